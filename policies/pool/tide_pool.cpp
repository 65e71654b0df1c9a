#include <memory>
#include <string>

#include "simulator/engine/planned_pool.hpp"
#include "simulator/option_values.hpp"
#include "simulator/registry.hpp"
#include "simulator/solvers/packing/minimise.hpp"

namespace tidepool {
namespace {

constexpr const char* kName = "tide-pool";

/// A layout of least height with a proof, or the best layout found with its gap to the best bound: see minimise(). Gaps
/// in lifetimes, fixed offsets and alignments are part of the problem.
class TidePool final : public Planner {
 public:
  explicit TidePool(const Options& options) : effort_{number_of(kName, options, "effort", 1e9)} {}

  Layout plan(const Instance& instance, const PackingLimits& limits) override {
    return minimise(instance, limits, effort_);
  }

 private:
  double effort_;
};

const RegisterPool kTidePool{{.name = kName,
                              .summary = "searches for the least height and proves it, or says how far it may be away",
                              .paper = "Tidepool: bottom-up complete search; compare Moffitt, MiniMalloc, ASPLOS 2023",
                              .options = {{"effort", std::to_string(kDefaultEffort), "number",
                                           "without a time limit: millions of sections after which the search ends"},
                                          alignment_option()},
                              .make = {},
                              .plan = [](const Options& options) { return std::make_unique<TidePool>(options); }}};

}  // namespace
}  // namespace tidepool
