// The memory of a repeated step in blocks of PyTorch's allocator, which are larger than the tensors in them.
#pragma once

#include "traces/trace.hpp"

namespace tidepool {

/// The largest sum of the blocks that PyTorch's allocator, with its default settings, gives to the buffers of a step that
/// is repeated: what torch.cuda.max_memory_allocated() returns. A block has a multiple of 512 bytes, and is not divided
/// if less than 1 MiB would be left of a large one.
Bytes allocated_peak(const Trace& step);

}  // namespace tidepool
