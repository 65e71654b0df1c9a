#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "simulator/engine/planned_pool.hpp"
#include "simulator/option_values.hpp"
#include "simulator/registry.hpp"
#include "simulator/solvers/packing/minimise.hpp"

namespace tidepool {
namespace {

constexpr const char* kName = "tide-pool";

/// A layout of least height with a proof, or the best layout found with its gap to the best bound: see minimise(). Gaps
/// in lifetimes, fixed offsets and alignments are part of the problem. If an early part of the search does not settle
/// the height, the other registered planners run with their defaults, so that no answer is higher than theirs. A
/// planner with the option "attempts" makes fewer attempts if the instance is large for the effort.
class TidePool final : public Planner {
 public:
  explicit TidePool(const Options& options) : effort_{number_of(kName, options, "effort", 1e9)} {}

  Layout plan(const Instance& instance, const PackingLimits& limits) override {
    return minimise(instance, limits, effort_, others(instance));
  }

 private:
  /// One-pass is left out, since the search begins with all of its orders.
  std::vector<std::unique_ptr<Planner>> others(const Instance& instance) const {
    std::vector<std::unique_ptr<Planner>> planners;
    for (const PoolInfo* info : all_pools())
      if (info->plan && info->name != kName && info->name != "one-pass")
        planners.push_back(info->plan({info->name, info->options, fewer_attempts(*info, instance)}));
    return planners;
  }

  /// The options of a planner that differ from its defaults.
  std::map<std::string, std::string> fewer_attempts(const PoolInfo& info, const Instance& instance) const {
    constexpr double kAlways = 50'000, kForOneEffort = 5'000;  // items placed: some 50 ms and 5 ms
    for (const OptionInfo& option : info.options) {
      if (option.name != "attempts") continue;
      const double items = std::max<double>(1, static_cast<double>(instance.items.size()));
      const double affordable = std::floor(std::max(kAlways, effort_ * kForOneEffort) / items);
      if (affordable < std::stod(option.default_value)) return {{option.name, fmt::format("{:.0f}", affordable + 1)}};
    }
    return {};
  }

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
