// The memory that copies and memsets read and write, from the parameters of the driver's calls.
#pragma once

#include <cuda.h>

#include <vector>

#include "tracer/cupti/driver_calls.hpp"
#include "tracer/raw/records.hpp"

namespace tidepool::inject {

/// Appends the uses of a copy or memset, including those of host memory: an import ignores uses outside of device
/// buffers. A strided use covers all bytes from its first to its last.
/// @param parameters  the call's parameter struct; those of calls of one kind begin with the same fields
void append_copy(cupti::DriverCall call, const void* parameters, std::vector<raw::BufferUse>& uses);

/// The same for the nodes of graphs.
void append_copy_node(const CUDA_MEMCPY3D& copy, std::vector<raw::BufferUse>& uses);
void append_memset_node(const CUDA_MEMSET_NODE_PARAMS& memset, std::vector<raw::BufferUse>& uses);

}  // namespace tidepool::inject
