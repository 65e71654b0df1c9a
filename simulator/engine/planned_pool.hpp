// A pool that serves the offsets of a planner.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "simulator/engine/pools/hole_map.hpp"
#include "simulator/options.hpp"
#include "simulator/planner.hpp"
#include "simulator/pool.hpp"

namespace tidepool {

/// The places of all buffers of a trace, each device planned by itself.
struct PlannedPlaces {
  std::vector<Bytes> offsets;  ///< by buffer
  Bytes height;                ///< largest height of a device's plan
};

/// Plans all places, or takes the plan from a cache of the 64 most recent plans: the runs of a sweep differ in
/// capacity, and the plan is the same for each. Threads may call it at the same time; those that need the same plan
/// wait for one of them to make it.
/// @param owner  the planner's name and options, with the alignment; plans with the same owner and trace hash are the
///               same
std::shared_ptr<const PlannedPlaces> planned_places(const std::string& owner, const Trace& trace, Bytes alignment,
                                                    Planner& planner);

/// Every buffer gets its planned offset if that place is free and inside the capacity. After evictions, another buffer
/// may be there. Then the buffer gets the lowest place above the plan's height, so that it takes no planned place; if
/// there is none, the smallest hole that fits (lowest address among equals). Cost per request: O(log holes), plus a
/// walk over the holes above the plan's height if the planned place is taken.
class PlannedPool final : public Pool {
 public:
  /// @param owner    the planner's name; the pool adds its options and seed for planned_places()
  /// @param options  of the planner, with "alignment"
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
  Bytes capacity_;
  std::shared_ptr<const PlannedPlaces> planned_;
  std::optional<HoleMap> holes_;
};

/// The granule of offsets and sizes: the option "alignment". Its default, 0B, means 512 B for a trace; for a list of
/// lifetimes, it means the alignments in the list's file. `pack` takes 1 B for a trace that was imported
/// from such a list.
OptionInfo alignment_option();
/// The granule for a trace.
Bytes trace_alignment(const Options& options);

}  // namespace tidepool
