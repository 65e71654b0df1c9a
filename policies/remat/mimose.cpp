#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "policies/planning/remat/draft.hpp"
#include "policies/planning/remat/layers.hpp"
#include "simulator/registry.hpp"

namespace tidepool {
namespace {

/// Mimose's scheduler chooses blocks to checkpoint until the bytes that they are estimated to free cover the step's
/// excess over the capacity. Blocks are sorted by these bytes: those within a tenth of the largest form a bucket, the
/// next ones another, and so on. Each choice is the first block that frees at least the remaining excess; if none does,
/// the first block. Buckets are considered in order, the one with the fewest bytes first; blocks of a bucket in forward
/// order.
///
/// A chosen block drops the versions that its ops save for the backward phase, after their last use in the forward
/// phase. When its backward ops begin, the ops that made these versions run again (as with PyTorch's early stop).
/// Versions that a later block reads are the block's output, and stay. Blocks are those of find_blocks(). Mimose learns
/// the bytes as quadratic functions of the size of the input; a trace has one input, so the estimate is its value. The
/// bytes that a block needs while it runs again are not part of the excess, as in Mimose: add an online policy
/// ("mimose+dtr"). O(blocks^2 + uses).
///
/// Paper: Liao et al., "Mimose: An Input-Aware Checkpointing Planner for Efficient Training on GPU", 2022
/// (arXiv 2209.02478). The rule is GreedyStrategy of the authors' programs (buaa-hipo/mimose-transformers, manager.py).
class Mimose final : public DraftPolicy {
 public:
  std::vector<Action> plan(const Trace& trace, const RunSpec& spec) override {
    draft_ = {};
    if (trace.ideal_peak() <= spec.capacity) return {};
    const Layers layers = find_layers(trace);
    const NetworkBlocks blocks = find_blocks(trace, layers);
    std::vector<Block> candidates = candidates_of(trace, layers, blocks);
    std::erase_if(candidates, [](const Block& block) { return block.inner.empty(); });
    ask_in_buckets(candidates);
    std::vector<Action> actions;
    Bytes excess = trace.ideal_peak() - spec.capacity;
    while (excess > Bytes{} && !candidates.empty()) {
      auto chosen =
          std::find_if(candidates.begin(), candidates.end(), [&](const Block& block) { return block.bytes >= excess; });
      if (chosen == candidates.end()) chosen = candidates.begin();
      excess -= chosen->bytes;
      checkpoint(*chosen, actions);
      candidates.erase(chosen);
    }
    std::stable_sort(actions.begin(), actions.end(),
                     [](const Action& a, const Action& b) { return a.before < b.before; });
    draft_ = Draft{std::move(actions)};
    return {};
  }

 private:
  struct Block {
    std::size_t index = 0;          ///< in forward order
    std::uint32_t backward = 0;     ///< its first backward op
    Bytes bytes = {};               ///< bytes that checkpointing frees
    std::vector<Saved> inner = {};  ///< versions that its ops save and that no later block reads
  };

  static std::vector<Block> candidates_of(const Trace& trace, const Layers& layers, const NetworkBlocks& blocks) {
    std::vector<Block> candidates;
    for (std::size_t b = 0; b < blocks.size(); ++b)
      candidates.push_back({.index = b, .backward = blocks.blocks[b].backward});
    for (const Kept& kept : layers.kept) {
      const std::size_t block = blocks.of_op[kept.saved.made];
      if (block == NetworkBlocks::kOutside || kept.saved.last_forward >= blocks.blocks[block].behind ||
          blocks.blocks[block].backward == kNever)
        continue;
      candidates[block].bytes += trace.size(kept.saved.version);
      candidates[block].inner.push_back(kept.saved);
    }
    return candidates;
  }

  /// Sorts blocks into the order in which they are considered.
  static void ask_in_buckets(std::vector<Block>& blocks) {
    std::stable_sort(blocks.begin(), blocks.end(), [](const Block& a, const Block& b) { return a.bytes > b.bytes; });
    for (auto first = blocks.begin(); first != blocks.end();) {
      const auto behind =
          std::find_if(first, blocks.end(), [&](const Block& block) { return block.bytes * 10 < first->bytes * 9; });
      std::sort(first, behind, [](const Block& a, const Block& b) { return a.index > b.index; });
      first = behind;
    }
    std::reverse(blocks.begin(), blocks.end());
  }

  static void checkpoint(const Block& block, std::vector<Action>& actions) {
    for (const Saved& saved : block.inner) {
      actions.push_back(
          {.verb = Verb::kDrop, .before = OpId{saved.last_forward + 1}, .subject = saved.version.value()});
      actions.push_back(
          {.verb = Verb::kRun, .before = OpId{std::min(block.backward, saved.first_again)}, .subject = saved.made});
    }
  }
};

const RegisterPolicy kMimose{
    {.name = "mimose",
     .kind = PolicyKind::kRemat,
     .summary = "checkpoints the blocks whose estimated bytes cover what the step needs beyond the capacity",
     .paper = "Mimose: Liao et al., 2022 (arXiv 2209.02478); its estimates for one size of input",
     .options = {},
     .make = [](const Options&) { return std::make_unique<Mimose>(); }}};

}  // namespace
}  // namespace tidepool
