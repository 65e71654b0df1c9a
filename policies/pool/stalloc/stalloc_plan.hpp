// STAlloc's offline plan: memory layers of equal sizes, and smaller blocks in their idle time.
#pragma once

#include "simulator/planner.hpp"

namespace tidepool {

/// STAlloc's planner, `split-and-fuse`, which its authors' synthesizer runs unless asked for another.
///
/// What lives from the first position to the last (weights, optimizer states) is stacked first. The others are taken by
/// size, largest first, all of one size together. Blocks of one size form memory layers: each block joins the layer
/// whose last block ended latest before it begins, else it opens a layer. First, every memory layer of larger sizes
/// takes those that fit: above everything that lives there during the block's life, up to the layer's size (there are
/// no holes). What no layer took forms new layers on top of all others.
///
/// Faithful to the code (github.com/infinigence/STAlloc 3a9f97f, Synthesizer/allocator.py, allocate_group), also where
/// it looks unintended:
///   - Before the blocks of a size are placed, six rehearsals change their order. A rehearsal lets each layer take
///     blocks that other layers took already, and then moves the positions in the order that no layer took to the
///     front, as if they were numbers of blocks.
///   - A block of a new layer counts as living one position before its birth, and not at its last one, so that a
///     block that ends there does not fit below it.
/// Here the recorded step stands for its iterations 0 and 1; its other algorithm, `group`, needs micro-batches and is
/// left out. Blocks with gaps live through them. Fixed ones lie below all layers. Alignments are those of the instance
/// (STAlloc: 512 B). The time to plan is O(layers * blocks) intersections.
///
/// Source: Huang et al., "STAlloc: Enhancing Memory Efficiency in Large-Scale Model Training with Spatio-Temporal
/// Planning", EuroSys 2026 (arXiv 2507.16274).
class StallocPlanner final : public Planner {
 public:
  Layout plan(const Instance& instance, const PackingLimits& limits) override;
};

}  // namespace tidepool
