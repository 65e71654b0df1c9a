#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "simulator/option_values.hpp"
#include "simulator/ordered_step.hpp"
#include "simulator/registry.hpp"
#include "simulator/run.hpp"
#include "simulator/solvers/order/search.hpp"
#include "traces/step/dependencies.hpp"

namespace tidepool {
namespace {

/// Runs the ops in an order that needs less memory, and keeps everything. Ops on lists of tensors are divided first.
/// Keeps the recorded order if the step fits in it, if the run makes a paper's assumptions (RunSpec::assume), or if the
/// step cannot be reordered (can_be_reordered). Otherwise takes the first of the rule's orders in which the step fits
/// on the run's pool. If the step fits in none, takes the order with the lowest peak, or the recorded one if none is
/// lower; policies after this one in a chain then make room. The orders of rule=lowest are those of `eager`, `least`
/// and `latest`, and then that of the search. Cost: see move_ops(); `effort` is its number of tries.
class OrderPeak final : public Policy {
 public:
  explicit OrderPeak(const Options& options)
      : rule_{options.word("rule")},
        divides_{options.flag("divide")},
        effort_{count_of<int>("order-peak", options, "effort", 1'000'000'000, 0)} {}

  std::shared_ptr<const OrderedStep> reorder(const Trace& trace, const RunSpec& spec) override {
    if (!spec.assume.name.empty() || !can_be_reordered(trace) || fits(trace, spec)) return {};
    const Trace divided = divides_ ? split_foreach(trace) : trace;
    const Lifetimes lifetimes{divided};
    const Dependencies dependencies = dependencies_of(divided);
    std::vector<std::string> rules{rule_};
    if (rule_ == "lowest") rules = {"eager", "least", "latest", "lowest"};
    std::shared_ptr<const OrderedStep> best;
    Bytes lowest = trace.ideal_peak();
    for (const std::string& rule : rules) {
      OpOrder order = order_by(rule, lifetimes, dependencies, effort_);
      const Bytes peak = order.peak;
      const auto step = std::make_shared<OrderedStep>(trace, step_order(std::move(order), divides_));
      if (fits(step->trace(), spec)) return step;
      if (peak < lowest) best = step, lowest = peak;
    }
    return best;
  }

 private:
  static bool fits(const Trace& trace, const RunSpec& spec) {
    return simulate_under(trace, spec, {}, false).outcome == Outcome::kOk;
  }

  std::string rule_;
  bool divides_;
  int effort_;
};

const RegisterPolicy kOrderPeak{
    {.name = "order-peak",
     .kind = PolicyKind::kOrder,
     .summary = "runs the ops in an order that needs less memory, and keeps everything",
     .paper = "list scheduling and moves; the problem is that of OLLA (Steiner et al., 2022), exact for up to 64 ops",
     .options = {{"rule", "lowest", "lowest|eager|least|latest",
                  "the orders that are tried; names as in tidepool order"},
                 {"divide", "on", "on/off", "an op on lists of tensors becomes one op for each tensor"},
                 {"effort", "20000", "number", "orders that a search tries"}},
     .make = [](const Options& options) { return std::make_unique<OrderPeak>(options); }}};

}  // namespace
}  // namespace tidepool
