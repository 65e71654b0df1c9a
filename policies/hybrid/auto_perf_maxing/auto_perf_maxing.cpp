#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include "policies/hybrid/auto_perf_maxing/block_shares.hpp"
#include "policies/planning/gaps/copy_draft.hpp"
#include "policies/planning/remat/draft.hpp"
#include "policies/planning/remat/layers.hpp"
#include "simulator/option_values.hpp"
#include "simulator/registry.hpp"

namespace tidepool {
namespace {

constexpr Bytes kLeastCopied{4096};

/// torchtitan's automatic choice between keeping, recomputing and offloading (memory policy auto_perf_maxing, solver
/// greedy). A linear program divides the activations of each transformer block into three shares, so that a model of
/// the peak fits the capacity (see share_out). Then each op of a block gets a fate (see follow_shares). If the step
/// fits without changes, or has fewer than two blocks, the plan is empty.
///   offload    copied to the host as soon as it is made; freed `defer` blocks behind the last block that reads it in
///              the forward phase, when the copy has ended; swapped in when the backward phase begins the block that
///              is `prefetch` blocks behind the tensor's own (the last block, if there are fewer)
///   recompute  dropped after its last use in the forward phase
///   keep       always for random ops, for tensors that a later block reads, and for all ops between blocks or behind
///              the last one (the head and the loss)
/// Saved tensors of ops in front of the first block are recomputed, unless the op is random. A block contains the ops
/// of one numbered module (see find_blocks). All buffers from before the step (parameters, gradients, optimizer states
/// and inputs) are subtracted from the capacity.
///
/// Differences from torchtitan: operations of several ranks are not modelled; the link is idle and as fast as the
/// machine states; tensors are not tested for being contiguous; dropped tensors are recomputed op by op; ties are
/// broken by the order of ops; the integer program, an alternative to the greedy rule, is left out. If no shares fit,
/// torchtitan ends with an error; here, the plan is empty: add an online policy ("auto-perf-maxing+dtr").
/// Source: pytorch/torchtitan, pull request 4636 (163bdff), experiments/graph_trainer/auto_sac_offload_solver.py and
/// cpu_offload.py.
class AutoPerfMaxing final : public DraftPolicy {
 public:
  AutoPerfMaxing(std::size_t prefetch, std::size_t defer) : prefetch_{prefetch}, defer_{defer} {}

  std::vector<Action> plan(const Trace& trace, const RunSpec& spec) override {
    draft_ = {};
    if (trace.ideal_peak() <= spec.capacity) return {};
    const Layers layers = find_layers(trace);
    blocks_ = find_blocks(trace, layers);
    if (blocks_.size() < 2) return {};
    std::vector<Load> loads = find_loads(trace, layers);
    const std::optional<std::vector<BlockShares>> shares = shares_of(trace, layers, spec, loads);
    if (!shares) return {};
    CopyDraft copies{trace};
    std::vector<Action> drops;
    for (std::size_t b = 0; b < loads.size(); ++b) {
      const std::vector<Fate> fates = follow_shares(loads[b].candidates, (*shares)[b]);
      for (std::size_t i = 0; i < fates.size(); ++i)
        for (const Kept* kept : loads[b].saved[i]) {
          if (fates[i] == Fate::kRecompute) drop(kept->saved, drops);
          if (fates[i] == Fate::kOffload) offload(b, kept->saved, copies);
        }
    }
    for (const Kept& kept : layers.kept)
      if (kept.saved.made < blocks_.blocks.front().first && !trace.op(OpId{kept.saved.made}).random)
        drop(kept.saved, drops);
    std::erase_if(drops, [&](const Action& action) { return action.before.index() >= trace.ops().size(); });
    std::stable_sort(drops.begin(), drops.end(), [](const Action& a, const Action& b) { return a.before < b.before; });
    draft_ = Draft{std::move(drops)};
    return copies.take();
  }

 private:
  /// The tensors that a block's ops save for backward, and their sizes.
  struct Load {
    std::vector<BlockOp> candidates;
    std::vector<std::vector<const Kept*>> saved;  ///< by candidate
    BlockLoad sums;
  };

  std::vector<Load> find_loads(const Trace& trace, const Layers& layers) const {
    std::vector<Load> loads(blocks_.size());
    for (const Kept& kept : layers.kept)
      if (const std::size_t block = blocks_.of_op[kept.saved.made]; block != NetworkBlocks::kOutside)
        add_candidate(trace, kept, loads[block]);
    return loads;
  }

  /// Adds a saved tensor to the candidate of its op. An op with several outputs, or whose first saved tensor is smaller
  /// than kLeastCopied, may be recomputed but not offloaded.
  void add_candidate(const Trace& trace, const Kept& kept, Load& block) const {
    const Saved& saved = kept.saved;
    const Bytes size = trace.size(saved.version);
    if (block.saved.empty() || block.saved.back().front()->saved.made != saved.made) {
      const Op& op = trace.op(OpId{saved.made});
      block.saved.emplace_back();
      block.candidates.push_back({.saved = {},
                                  .duration = op.duration,
                                  .fixed = op.random,
                                  .offloadable = trace.made(OpId{saved.made}).size() == 1 && size >= kLeastCopied});
    }
    BlockOp& candidate = block.candidates.back();
    candidate.saved += size;
    for (const OpId reader : trace.readers(saved.version)) {
      const bool forward = reader.value() <= saved.last_forward;
      const std::size_t reading = blocks_.of_op[reader.index()];
      candidate.fixed |= forward && reading != NetworkBlocks::kOutside && reading > blocks_.of_op[saved.made];
    }
    block.saved.back().push_back(&kept);
    block.sums.activations += size;
  }

  std::optional<std::vector<BlockShares>> shares_of(const Trace& trace, const Layers& layers, const RunSpec& spec,
                                                    std::vector<Load>& loads) const {
    BlockLimits limits{.budget = spec.capacity,
                       .head = add_live_bytes(trace, layers, loads),
                       .to_host = {},
                       .to_device = {},
                       .host = spec.machine.host.capacity};
    for (const Buffer& buffer : trace.buffers())
      if (buffer.born_before) limits.budget -= buffer.size;
    if (limits.budget <= Bytes{}) return {};
    std::vector<BlockLoad> sums;
    for (Load& load : loads) {
      for (const BlockOp& candidate : load.candidates)
        if (candidate.fixed) load.sums.fixed += candidate.saved;
      sums.push_back(load.sums);
    }
    Nanos forward, backward;
    for (std::uint32_t op = 0; op < layers.backward_behind; ++op)
      if (blocks_.of_op[op] != NetworkBlocks::kOutside)
        (op < layers.backward ? forward : backward) += trace.op(OpId{op}).duration;
    const auto carried = [&](const Link& link, Nanos time) {
      const double bytes = static_cast<double>(link.rate.count()) * static_cast<double>(time.count()) /
                           (1e9 * static_cast<double>(loads.size()));
      return Bytes{static_cast<std::int64_t>(std::min(bytes, 4e18))};
    };
    limits.to_host = carried(spec.machine.d2h, forward);
    limits.to_device = carried(spec.machine.h2d, backward);
    return share_out(sums, limits);
  }

  /// Fills in the temporary bytes of each block. @return the most live bytes of buffers that ops of the forward and
  /// the backward phase make outside of all blocks
  Bytes add_live_bytes(const Trace& trace, const Layers& layers, std::vector<Load>& loads) const {
    Bytes temporary, outside, most_outside;
    const auto count = [&](std::uint32_t buffer, int sign) {
      const OpId maker = maker_of(trace, BufferId{buffer});
      const Bytes change = trace.buffers()[buffer].size * sign;
      if (!maker.valid() || maker.value() >= layers.backward_behind) return;
      if (maker.value() >= layers.backward) temporary += change;
      if (blocks_.of_op[maker.index()] == NetworkBlocks::kOutside) outside += change;
      most_outside = std::max(most_outside, outside);
    };
    for (const Event& event : trace.events()) {
      if (event.kind == EventKind::kAlloc) count(event.id, 1);
      if (event.kind == EventKind::kFree && !trace.buffers()[event.id].born_before) count(event.id, -1);
      if (event.kind != EventKind::kRun || event.id < layers.backward ||
          blocks_.of_op[event.id] == NetworkBlocks::kOutside)
        continue;
      Bytes& most = loads[blocks_.of_op[event.id]].sums.backward_temporary;
      most = std::max(most, temporary);
    }
    return most_outside;
  }

  /// The op that makes a buffer's first content; if none does, the first op that reads it; not valid without either.
  static OpId maker_of(const Trace& trace, BufferId buffer) {
    const VersionId first = trace.first_version(buffer);
    if (trace.version(first).producer.valid()) return trace.version(first).producer;
    return trace.readers(first).empty() ? OpId{} : trace.readers(first).front();
  }

  static void drop(const Saved& saved, std::vector<Action>& drops) {
    drops.push_back(
        {.verb = Verb::kDrop, .before = OpId{std::size_t{saved.last_forward} + 1}, .subject = saved.version.value()});
  }

  void offload(std::size_t own, const Saved& saved, CopyDraft& copies) const {
    const std::size_t reading = blocks_.of_op[saved.last_forward];
    const std::size_t read = reading == NetworkBlocks::kOutside ? own : std::max(own, reading);
    const std::size_t last = blocks_.size() - 1;
    const std::uint32_t gone = std::max(blocks_.blocks[std::min(read + defer_, last)].behind, saved.last_forward + 1);
    copies.copy_out(saved.made + 1, saved.version);
    copies.await(gone, saved.version);
    copies.release(gone, saved.version);
    const std::uint32_t back = blocks_.blocks[std::min(own + prefetch_, last)].backward;
    copies.copy_back(std::max(std::min(back, saved.first_again), gone + 1), saved.version);
  }

  std::size_t prefetch_, defer_;
  NetworkBlocks blocks_;
};

const RegisterPolicy kAutoPerfMaxing{
    {.name = "auto-perf-maxing",
     .kind = PolicyKind::kHybrid,
     .summary = "shares of each block to keep, recompute and offload by a linear program, then op by op",
     .paper = "torchtitan, auto_perf_maxing (pull request 4636; experiments/graph_trainer)",
     .options = {{"prefetch", "1", "number",
                  "the copy back of a tensor begins this many blocks before its own in the backward phase"},
                 {"defer", "1", "number", "blocks behind its last reader at which a tensor must have left"}},
     .make = [](const Options& options) {
       return std::make_unique<AutoPerfMaxing>(count_of("auto-perf-maxing", options, "prefetch", 100'000),
                                               count_of("auto-perf-maxing", options, "defer", 100'000));
     }}};

}  // namespace
}  // namespace tidepool
