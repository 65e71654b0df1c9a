#include <string>

#include "simulator/packing/minimise.hpp"
#include "simulator/packing/planned_pool.hpp"
#include "simulator/registry.hpp"

namespace tidepool {
namespace {

/// The least height, proved, or the best found with the gap to the best bound: see minimise(). Gaps in lifetimes, fixed
/// offsets and alignments are part of the problem.
class TidePool final : public Planner {
 public:
  explicit TidePool(const Options& options) : effort_{options.number("effort")} {}

  Layout plan(const Instance& instance, const PackingLimits& limits) override {
    return minimise(instance, limits, effort_);
  }

 private:
  double effort_;
};

const RegisterPool kRegister{{.name = "tide-pool",
                              .summary = "searches for the least height and proves it, or says how far it may be away",
                              .paper = "ours: bottom-up complete search; compare Moffitt, MiniMalloc, ASPLOS 2023",
                              .options = {{"effort", std::to_string(kDefaultEffort), "number",
                                           "without a time limit: where the search ends, in millions of sections"},
                                          alignment_option()},
                              .make = {},
                              .plan = [](const Options& options) { return std::make_unique<TidePool>(options); }}};

}  // namespace
}  // namespace tidepool
