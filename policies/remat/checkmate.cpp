#include "policies/planning/remat/checkmate.hpp"

#include <memory>
#include <optional>

#include "policies/planning/remat/condense.hpp"
#include "policies/planning/remat/draft.hpp"
#include "simulator/option_values.hpp"
#include "simulator/registry.hpp"

namespace tidepool {
namespace {

/// Decides for groups of ops which outputs stay in memory and which ops run again before each group. With solve=ilp, an
/// integer program over all groups at all points in time decides this (see solve_exactly); with solve=lp, its
/// relaxation with two-phase rounding, which is solved up to three times (see solve_by_rounding). The groups are those
/// of condense(). The program's size grows with the square of the number of groups, and the time to solve it with about
/// the cube, so some fifty groups are feasible. Only outputs of forward groups are dropped. Sizes are sums of bytes
/// without addresses, so add an online policy for requests that the pool cannot place ("checkmate+dtr"). If the
/// relaxation has no solution, the capacity is raised in steps (see schedule_within). With solve=ilp, the result is the
/// same in every run unless the time limit stops the solver; if the solver finds nothing, the relaxation is rounded.
/// Paper: Jain et al., "Checkmate: Breaking the Memory Wall with Optimal Tensor Rematerialization", MLSys 2020.
class Checkmate final : public DraftPolicy {
 public:
  Checkmate(std::size_t stages, bool exact, Nanos limit) : stages_{stages}, exact_{exact}, limit_{limit} {}

  std::vector<Action> plan(const Trace& trace, const RunSpec& spec) override {
    const CondensedTrace condensed = condense(trace, stages_);
    if (const auto schedule =
            schedule_within(condensed.graph, spec.capacity, exact_ ? std::optional{limit_} : std::nullopt))
      draft_ = Draft{actions_of(trace, condensed, *schedule)};
    return {};
  }

 private:
  std::size_t stages_;
  bool exact_;
  Nanos limit_;
};

const RegisterPolicy kCheckmate{
    {.name = "checkmate",
     .kind = PolicyKind::kRemat,
     .summary = "chooses what each group of ops keeps, by an integer program or its rounded relaxation",
     .paper = "Jain et al., Checkmate, MLSys 2020",
     .options = {{"stages", "12", "number",
                  "most stages of the forward phase; each becomes about two groups, and so does its backward part"},
                 {"solve", "lp", "lp|ilp", "the relaxation, rounded in two phases, or the integer program"},
                 {"time-limit", "60s", "ns", "wall time for solve=ilp"}},
     .make = [](const Options& options) {
       return std::make_unique<Checkmate>(count_of("checkmate", options, "stages", 100), options.word("solve") == "ilp",
                                          options.nanos("time-limit"));
     }}};

}  // namespace
}  // namespace tidepool
