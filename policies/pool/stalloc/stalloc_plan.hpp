// STAlloc's offline plan: memory layers of equal sizes, and smaller blocks in their idle time.
#pragma once

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

}  // namespace tidepool
