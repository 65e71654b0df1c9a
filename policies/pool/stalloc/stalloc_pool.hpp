// STAlloc's memory at run time: the planned pool, its idle ranges, and a caching allocator.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "policies/pool/stalloc/stalloc_plan.hpp"
#include "simulator/engine/planned_pool.hpp"
#include "simulator/engine/pools/caching_pool.hpp"
#include "simulator/engine/pools/hole_map.hpp"
#include "simulator/instance.hpp"
#include "simulator/options.hpp"

namespace tidepool {

/// One segment holds the planned places (see StallocPlanner); it is reserved when the run begins. A buffer gets its
/// planned place. A request is dynamic if its place is taken, or if the plan does not know it. A dynamic request gets
/// the smallest range that is free now and that the plan leaves idle until the end of the buffer's life. (Content that
/// is recomputed after this end needs the range only for a moment.) If there is no such range, PyTorch's caching
/// allocator serves the request. In STAlloc, dynamic requests come from layers of experts, whose sizes differ between
/// iterations. In a recorded step all sizes are known, so here dynamic requests come from versions that a policy swaps
/// in or recomputes. If the device refuses the segment, STAlloc stops; here the caching allocator serves all requests.
///
/// Left out: STAlloc keeps a table for blocks of up to 512 B, with twice the bytes that they need; here they are
/// planned like all other blocks. STAlloc ignores streams; here the next user of a place waits, as with every pool.
/// Source: github.com/infinigence/STAlloc 3a9f97f, Allocator/main.cpp, StaticAllocator.hpp, OnlineDynamicManager.hpp.
class StallocPool final : public Pool {
 public:
  /// @param options  has "alignment"
  explicit StallocPool(const Options& options);

  void start(const Trace& trace, Bytes capacity, Device& device) override;
  std::optional<Block> place(const Request& request) override;
  void release(const Block& block) override;
  void give_back(const Block& block, const Departure& departure) override;
  Bytes largest_hole() const override;
  std::vector<Count> counts() const override;

 private:
  bool is_planned(const Block& block) const {
    return at_ && *at_ <= block.offset && block.offset < *at_ + planned_->height;
  }
  struct PlannedRange {
    Bytes from, to;
    Interval life;
  };
  Bytes place_size(Bytes requested) const;
  std::optional<Bytes> place_planned(const Request& request, Bytes size);
  /// O(buffers).
  std::optional<Bytes> place_idle(const Request& request, Bytes size);
  Interval life_from(const Request& request) const;

  std::string owner_;
  Bytes alignment_;
  StallocPlanner planner_;
  const Trace* trace_ = nullptr;
  std::shared_ptr<const PlannedPlaces> planned_;
  std::optional<Bytes> at_;       // address of the segment; none if it was refused
  std::optional<HoleMap> holes_;  // of the segment, from 0
  std::optional<CachingPool> rest_;
  std::vector<Interval> lives_;           // by buffer, in steps of the trace
  std::vector<PlannedRange> by_address_;  // of all buffers
  std::int64_t served_ = 0, reused_ = 0, cached_ = 0;
};

}  // namespace tidepool
