#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "policies/planning/gaps/copy_draft.hpp"
#include "policies/planning/remat/checkmate.hpp"
#include "policies/planning/remat/condense.hpp"
#include "policies/planning/remat/paged_draft.hpp"
#include "simulator/option_values.hpp"
#include "simulator/registry.hpp"

namespace tidepool {
namespace {

/// @param early  whether a swap-in is requested at the start of the group in which the schedule pages the value in;
///               otherwise it is requested behind that group
PagedActions actions_of(const Trace& trace, const CondensedTrace& condensed, const KeepSchedule& schedule, bool early) {
  CopyDraft copies{trace};
  std::map<VersionId, OpId> out;  // the op at which the version is copied out
  for (std::size_t t = 0; t < condensed.groups.size(); ++t)
    for (std::size_t i = 0; i < schedule.kept[t].size(); ++i)
      for (const Saved& saved : condensed.groups[i].saved) {
        const OpGroup& now = condensed.groups[t];
        if (schedule.paged_out[t][i]) {
          copies.copy_out(now.first, saved.version);
          out[saved.version] = OpId{now.first};
        }
        if (schedule.paged_in[t][i]) copies.copy_back(early ? now.first : now.behind, saved.version);
      }
  PagedActions actions;
  for (const Action& action : actions_of(trace, condensed, schedule)) {
    const VersionId v{action.subject};
    const auto copied = action.verb == Verb::kDrop ? out.find(v) : out.end();
    if (copied != out.end() && copied->second < action.before)
      copies.release(action.before.value(), v);
    else
      actions.others.push_back(action);
  }
  actions.copies = copies.take();
  return actions;
}

/// POET decides for groups of ops which outputs stay in memory, which are paged out to the host and back, and which ops
/// run again before each group. An integer program over all groups at all points in time minimises the time of reruns
/// plus `paging` times the time of copies (see solve_exactly). POET minimises energy; here a joule is a second of
/// computing, and `paging` is the power of a copy in relation to that of an op. `reruns` limits the time of reruns, as
/// POET's deadline does. As in the paper, the program takes copies to cost no time.
///
/// A version that is paged in during a group is requested when the group begins, or behind the group if a run of the
/// plan without other policies is faster with that. POET counts its bytes from the end of the group. The groups are
/// those of condense(), and only outputs of forward groups leave. solve=lp is not POET's: it rounds the relaxation of
/// the program as in Checkmate, since the integer program takes long. If no rounding fits both the capacity and
/// `reruns`, more time goes to reruns than `reruns` allows. Sizes are sums of bytes, so add an online policy
/// ("poet+dtr"). With solve=ilp, the result is the same in every run unless the time limit stops the solver.
/// O(n^2 + n edges) variables for n groups.
///
/// Paper: Patil, Jain, Dutta, Stoica and Gonzalez, "POET: Training Neural Networks on Tiny Devices with Integrated
/// Rematerialization and Paging", ICML 2022, with the authors' program (ShishirPatil/poet, poet_solver.py).
class Poet final : public PagedPolicy {
 public:
  explicit Poet(const Options& options)
      : stages_{count_of("poet", options, "stages", 100)},
        paging_{number_of("poet", options, "paging", 1e6)},
        reruns_{number_of("poet", options, "reruns", 1e6)} {
    if (options.word("solve") == "ilp") exact_ = options.nanos("time-limit");
  }

  std::vector<Action> plan(const Trace& trace, const RunSpec& spec) override {
    draft_ = {};
    if (trace.ideal_peak() <= spec.capacity) return {};
    CondensedTrace condensed = condense(trace, stages_);
    KeepGraph& graph = condensed.graph;
    const auto part = [](Nanos time, double factor) {
      return Nanos{static_cast<std::int64_t>(static_cast<double>(time.count()) * factor)};
    };
    for (const Bytes size : graph.size) {
      graph.page_out.push_back(part(spec.machine.d2h.time(size), paging_));
      graph.page_in.push_back(part(spec.machine.h2d.time(size), paging_));
    }
    Nanos step;
    for (const Op& op : trace.ops()) step += op.duration;
    if (reruns_ > 0) graph.most_again = part(step, reruns_);
    const std::optional<KeepSchedule> schedule = schedule_within(graph, spec.capacity, exact_);
    if (!schedule) return {};
    return follow_better(trace, spec, [&](bool early) { return actions_of(trace, condensed, *schedule, early); });
  }

 private:
  std::size_t stages_;
  double paging_, reruns_;
  std::optional<Nanos> exact_;
};

const RegisterPolicy kPoet{
    {.name = "poet",
     .kind = PolicyKind::kHybrid,
     .summary =
         "chooses what each group of ops keeps, pages out or recomputes, by an integer program or its relaxation",
     .paper = "POET: Patil et al., ICML 2022",
     .options = {{"stages", "8", "number",
                  "most stages of the forward phase; each becomes about two groups, and so does its backward part"},
                 {"paging", "1", "number", "price of a second of copying, in seconds of computing"},
                 {"reruns", "0", "number", "most time of reruns, in times of the step; 0: no limit"},
                 {"solve", "lp", "lp|ilp", "the relaxation, rounded, or the integer program"},
                 {"time-limit", "60s", "ns", "wall time for solve=ilp"}},
     .make = [](const Options& options) { return std::make_unique<Poet>(options); }}};

}  // namespace
}  // namespace tidepool
