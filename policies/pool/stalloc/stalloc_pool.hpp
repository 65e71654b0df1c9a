// STAlloc's offline plan, and its memory at run time: the planned pool, its idle ranges, and a caching allocator.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "simulator/engine/planned_pool.hpp"
#include "simulator/engine/pools/caching_pool.hpp"
#include "simulator/engine/pools/hole_map.hpp"
#include "simulator/instance.hpp"
#include "simulator/options.hpp"
#include "simulator/planner.hpp"

namespace tidepool {

/// STAlloc's planner `split-and-fuse`, the default of its authors' synthesizer.
///
/// Blocks that live from the first position to the last (weights, optimizer states) are stacked first. The other blocks
/// are placed by size, the largest size first, all blocks of one size together. Blocks of one size form memory layers:
/// a block joins the layer whose last block ended latest before the block begins; if there is none, it opens a layer.
/// Before that, every memory layer of a larger size takes the blocks that fit. A block fits if the layer has room for
/// it on top of all blocks that live there during its life (holes are not used). Blocks that no layer took form new
/// layers on top of all others.
///
/// Faithful to the code (github.com/infinigence/STAlloc 3a9f97f, Synthesizer/allocator.py, allocate_group), even where
/// the code looks unintended:
///   - Before the blocks of a size are placed, six rehearsals change their order. In a rehearsal, a layer may take
///     blocks that other layers have taken. Then the positions (in the order) of blocks that no layer took move to the
///     front, as if these positions were numbers of blocks.
///   - A block of a new layer counts as alive from one position before its birth, so that a smaller block that ends at
///     this position does not fit into the layer. It counts as ended at its last position.
/// Here the recorded step stands for STAlloc's iterations 0 and 1. STAlloc's other algorithm, `group`, needs
/// micro-batches and is left out. Blocks with idle intervals keep their memory during these. Fixed blocks lie below all
/// layers. Alignments are those of the instance (STAlloc: 512 B). Planning tries O(layers * blocks) times to fit a
/// block into a layer.
///
/// Source: Huang et al., "STAlloc: Enhancing Memory Efficiency in Large-Scale Model Training with Spatio-Temporal
/// Planning", EuroSys 2026 (arXiv 2507.16274).
class StallocPlanner final : public Planner {
 public:
  Layout plan(const Instance& instance, const PackingLimits& limits) override;
};

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
