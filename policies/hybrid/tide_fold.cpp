#include <memory>
#include <optional>
#include <utility>

#include "policies/planning/gaps/trials.hpp"
#include "policies/planning/search/answering_planner.hpp"
#include "policies/planning/search/best_answer.hpp"
#include "policies/planning/search/reruns.hpp"
#include "policies/planning/search/tied_search.hpp"
#include "simulator/option_values.hpp"
#include "simulator/registry.hpp"

namespace tidepool {
namespace {

/// Tidepool's own planner for deep models: finds the layers of the step and decides for all of them at once (see
/// TiedSearch). If no layers repeat, every idle interval is decided by itself, and `effort` is soon used up.
///
/// Deterministic. Cost: at most `effort` simulations at any depth, O(ops log ops) for each; fewer if the best plan has
/// no overhead or the step is so small that no plans are left to try.
class TideFold final : public AnsweringPlanner {
 public:
  explicit TideFold(const Options& options)
      : fold_{options.flag("fold")},
        effort_{count_of<std::int64_t>("tide-fold", options, "effort", 1'000'000'000, 0)},
        least_{options.bytes("least")},
        drops_too_{options.word("with") != "swap"} {}

  std::vector<Action> plan(const Trace& trace, const RunSpec& spec) override {
    if (ideal_peak(trace, spec.assume) > spec.capacity) return answer_with(search(trace, spec), trace, spec);
    return answer_with([] { return follow_draft({}, OnDemand::kCopy); }, trace, spec);
  }

  std::int64_t cost_evaluations() const override { return judged_; }

 private:
  Maker search(const Trace& trace, const RunSpec& spec) {
    const StepCircle circle = step_circle(trace);
    const std::vector<Gap> gaps = find_gaps_of_run(trace, least_, circle, spec);
    Structure structure = find_structure(trace);
    if (!fold_)
      for (std::uint32_t op = 0; op < structure.like.size(); ++op) structure.like[op] = op;
    Trials trials{trace, spec, effort_, OnDemand::kCopy};
    TiedSearch tied{circle,
                    gaps,
                    gap_classes(structure, circle, gaps),
                    drops_too_ ? Reruns{trace, gaps}.costs() : std::vector<Nanos>(gaps.size(), Reruns::kImpossible),
                    spec.machine,
                    spec.capacity,
                    [&](const GapPlan& plan) { return trials.add(gaps, plan); },
                    [&](const std::vector<std::uint32_t>& dropped) { return trials.must_lose(gaps, dropped); },
                    effort_};
    tied.run();
    judged_ = tied.judged();
    BestAnswer best{trials.best_result(),
                    {[draft = trials.best_draft()] { return follow_draft(draft, OnDemand::kCopy); }, {}}};
    best.offer_copies_on_demand(trace, spec);
    return best.answer.make;
  }

  bool fold_;
  std::int64_t effort_;
  Bytes least_;
  bool drops_too_;
  std::int64_t judged_ = 0;
};

const RegisterPolicy kTideFold{
    {.name = "tide-fold",
     .kind = PolicyKind::kHybrid,
     .summary = "plans what to copy and what to recompute for all similar layers of a step at once",
     .paper = "Tidepool",
     .options = {{"fold", "on", "on/off", "decide for all similar layers together"},
                 {"with", "swap+remat", "swap|swap+remat", "what it may do"},
                 {"effort", "500", "number", "plans to try"},
                 {"least", "64KiB", "bytes", "smaller buffers stay"}},
     .make = [](const Options& options) { return std::make_unique<TideFold>(options); }}};

}  // namespace
}  // namespace tidepool
