#include "policies/planning/remat/checkmate.hpp"

#include <memory>

#include "policies/planning/remat/chain_policy.hpp"
#include "policies/planning/remat/condense.hpp"
#include "policies/planning/remat/draft.hpp"
#include "simulator/registry.hpp"

namespace tidepool {
namespace {

/// Decides for groups of ops what each leaves in memory and what is run again in front of each, by an integer program
/// over all groups at all points in time, or by its relaxation with two-phase rounding (see solve_exactly and
/// solve_by_rounding), which is solved up to three times. The groups are those of condense(): programs grow with their
/// square, times with about their cube, so some fifty are within reach. Only what forward groups make is dropped; sizes
/// are sums of bytes, so name an online policy behind it ("checkmate+dtr"). Where nothing fits, capacity is added in
/// steps until something does. With solve=ilp the result is the same from run to run unless the limit cuts the solver
/// off, and where it finds nothing the relaxation is rounded instead.
/// Paper: Jain et al., "Checkmate: Breaking the Memory Wall with Optimal Tensor Rematerialization", MLSys 2020.
class Checkmate final : public DraftPolicy {
 public:
  Checkmate(std::size_t stages, bool exact, Nanos limit) : stages_{stages}, exact_{exact}, limit_{limit} {}

  std::vector<Action> plan(const Trace& trace, const RunSpec& spec) override {
    const CondensedTrace condensed = condense(trace, stages_);
    const KeepGraph& graph = condensed.graph;
    std::vector<std::vector<bool>> all(graph.nodes());
    for (std::size_t t = 0; t < all.size(); ++t)
      for (std::size_t i = 0; i < std::min(t, graph.repeatable()); ++i) all[t].push_back(t <= graph.last[i]);
    const Bytes most = cost_of(graph, complete(graph, all)).peak;
    if (most <= spec.capacity) return {};
    KeepSolution solution;
    if (exact_) solution = solve_exactly(graph, spec.capacity, {.time = limit_});
    // Where nothing fits, the least capacity that is enough, in steps.
    for (int step = 0; !solution.schedule && step <= kSteps; ++step)
      solution = solve_by_rounding(graph, spec.capacity + (most - spec.capacity) / kSteps * step);
    if (!solution.schedule) return {};
    draft_ = Draft{actions_of(trace, condensed, *solution.schedule)};
    return {};
  }

 private:
  static constexpr int kSteps = 4;

  std::size_t stages_;
  bool exact_;
  Nanos limit_;
};

const RegisterPolicy kRegistered{
    {.name = "checkmate",
     .kind = PolicyKind::kRemat,
     .summary = "what each group of ops keeps, by an integer program or its rounded relaxation",
     .paper = "Jain et al., Checkmate, MLSys 2020",
     .options = {{"stages", "12", "number",
                  "of the forward phase, at most; each makes about two groups, and so does the backward phase"},
                 {"solve", "lp", "lp|ilp", "the relaxation, rounded in two phases, or the integer program"},
                 {"time-limit", "60s", "ns", "wall time for solve=ilp"}},
     .make = [](const Options& options) {
       return std::make_unique<Checkmate>(count_of("checkmate", options, "stages", 100), options.word("solve") == "ilp",
                                          options.nanos("time-limit"));
     }}};

}  // namespace
}  // namespace tidepool
