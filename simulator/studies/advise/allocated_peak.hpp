// The memory of a repeated step in blocks of PyTorch's allocator, which are larger than the tensors in them.
#pragma once

#include "traces/trace.hpp"

namespace tidepool {

/// The largest sum of blocks that PyTorch's allocator, with its default settings, gives to the buffers of a repeated
/// step, as torch.cuda.max_memory_allocated() returns it. A block has a multiple of 512 bytes; a large block is not
/// divided if at most 1 MiB would be left.
Bytes allocated_peak(const Trace& step);

}  // namespace tidepool
