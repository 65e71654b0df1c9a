#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <utility>

#include "policies/planning/remat/draft.hpp"
#include "policies/planning/remat/saved.hpp"
#include "policies/remat/auto_sac/module_stats.hpp"
#include "simulator/option_values.hpp"
#include "simulator/registry.hpp"

namespace tidepool {
namespace {

/// Selective checkpoints by module. An integer program chooses modules and the bytes that each gives up, so that the
/// peak of the backward phase fits the capacity (see choose_modules). In each module, a knapsack (keep_best) or a
/// greedy rule (keep_greedily) chooses the ops that keep their outputs. Content from before the step that is neither a
/// parameter nor a gradient is subtracted from the capacity first. The output of a module's last op stays, since other
/// modules hold it. Differences from PyTorch: outputs that the backward phase does not read are never kept, and dropped
/// outputs come back op by op when they are needed, not module by module. If the trace names no modules or no choice
/// fits, nothing is given up: add an online policy ("auto-sac+dtr"). Sizes are sums of bytes.
/// Source: PyTorch 2.15, torch/distributed/_tools/sac_ilp.py; pull request 140410 for the greedy rule.
class AutoSac final : public DraftPolicy {
 public:
  AutoSac(std::string choose, std::int64_t shards, int nodes)
      : choose_{std::move(choose)}, shards_{shards}, nodes_{nodes} {}

  std::vector<Action> plan(const Trace& trace, const RunSpec& spec) override {
    Bytes capacity = spec.capacity;
    for (const Buffer& buffer : trace.buffers())
      if (buffer.born_before && buffer.kind != BufferKind::kParameter && buffer.kind != BufferKind::kGradient)
        capacity -= buffer.size;
    const std::vector<CalledModule> modules = called_modules(trace);
    if (modules.empty()) return {};
    const std::optional<ModuleChoice> choice = choose_modules(model_stats(trace, modules), capacity, shards_, nodes_);
    if (!choice) return {};
    std::vector<bool> given_up(trace.ops().size());
    for (const ModuleDecision& decision : choice->modules)
      for (const ModuleCall& call : modules[decision.module].calls) give_up(trace, call, decision.given_up, given_up);
    std::vector<Action> drops;
    for (const Saved& saved : saved_versions(trace, first_backward_op(trace)))
      if (given_up[saved.made] && saved.last_forward + 1 < trace.ops().size())
        drops.push_back({.verb = Verb::kDrop,
                         .before = OpId{std::size_t{saved.last_forward} + 1},
                         .subject = saved.version.value()});
    std::stable_sort(drops.begin(), drops.end(), [](const Action& a, const Action& b) { return a.before < b.before; });
    draft_ = Draft{std::move(drops)};
    return {};
  }

 private:
  void give_up(const Trace& trace, const ModuleCall& call, double share, std::vector<bool>& given_up) const {
    const CallRegion found = region_of(trace, call);
    const Bytes limit = share_of(found.region, 1 - std::round(share * 1e4) / 1e4);
    const std::optional<std::vector<bool>> kept =
        choose_ == "greedy" ? keep_greedily(found.region, limit) : keep_best(found.region, limit);
    if (!kept) return;
    for (std::size_t i = 0; i < found.ops.size(); ++i)
      if (!(*kept)[i] && i != found.last) given_up[found.ops[i].index()] = true;
  }

  std::string choose_;
  std::int64_t shards_;
  int nodes_;
};

const RegisterPolicy kAutoSac{
    {.name = "auto-sac",
     .kind = PolicyKind::kRemat,
     .summary = "checkpoints modules selectively: which, how much of each, and which of its ops, by an integer program",
     .paper = "PyTorch 2.15, torch.distributed._tools.sac_ilp",
     .options = {{"choose", "best", "best|greedy", "the ops that keep their outputs: by a knapsack or greedily"},
                 {"shards", "1", "number", "devices that parameters and gradients are divided among"},
                 {"nodes", "1000", "number", "most nodes of branch and bound of the integer program"}},
     .make = [](const Options& options) {
       return std::make_unique<AutoSac>(options.word("choose"),
                                        count_of<std::int64_t>("auto-sac", options, "shards", 100'000),
                                        count_of<int>("auto-sac", options, "nodes", 100'000'000));
     }}};

}  // namespace
}  // namespace tidepool
