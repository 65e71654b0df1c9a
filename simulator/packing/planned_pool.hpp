// Serves the offsets that a planner found, as a pool.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "simulator/options.hpp"
#include "simulator/planner.hpp"
#include "simulator/pool.hpp"
#include "simulator/pools/hole_map.hpp"

namespace tidepool {

/// Every buffer gets its planned offset if that is free and inside the capacity. What comes back after an eviction, or
/// finds its place taken by such a return, goes where it does not disturb the plan if possible: the lowest hole above
/// the plan's height that fits, else the smallest hole below (lowest address among equals). Cost per request: O(log n).
class PlannedPool final : public Pool {
 public:
  /// @param owner    the planner's name and options, which with the trace's hash say which plans are the same
  /// @param options  has "alignment"
  PlannedPool(std::string owner, std::unique_ptr<Planner> planner, const Options& options);

  void start(const Trace& trace, Bytes capacity, Device& device) override;
  std::optional<Block> place(const Request& request) override;
  void release(const Block& block) override;
  Bytes largest_hole() const override;

 private:
  std::string owner_;
  std::unique_ptr<Planner> planner_;
  Bytes alignment_;
  const Trace* trace_ = nullptr;
  Bytes capacity_, height_;
  std::shared_ptr<const std::vector<Bytes>> planned_;  // by buffer
  std::optional<HoleMap> holes_;
};

/// What offsets and sizes are multiples of: the option "alignment", where 0B stands for 512B in a trace and for what
/// the file says in a list of lifetimes.
OptionInfo alignment_option();
Bytes trace_alignment(const Options& options);

}  // namespace tidepool
