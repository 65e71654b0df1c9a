// State of a thread of the job between the callbacks of its calls, and the memory that copies and memsets use.
#pragma once

#include <cuda.h>
#include <cupti.h>

#include <cstdint>
#include <vector>

#include "tracer/cupti/driver_calls.hpp"
#include "tracer/cupti/parameter_scan.hpp"
#include "tracer/raw/records.hpp"

namespace tidepool::inject {

struct Thread {
  std::uint32_t session = 0;               ///< the recording in which the next three members are valid
  std::uint32_t outer_correlation = 0;     ///< of the runtime call that contains the current call; 0 = none
  std::uint32_t inner_correlation = 0;     ///< of a runtime call inside the outer one; 0 = none
  std::uint32_t depth = 0;                 ///< calls with callbacks that the thread is in
  std::vector<CUgraphNode> created_nodes;  ///< nodes of graphs that the current driver call has created
  cupti::ParameterScan scan;               ///< a member, so that its memory is reused
};

Thread& this_thread();

/// The correlation id of the call's records: that of the runtime call around it, if there is one.
std::uint32_t correlation_of(const CUpti_CallbackData& data);

/// Appends the uses of a copy or memset, including those of host memory: an import ignores uses outside of device
/// buffers. A strided use covers all bytes from its first to its last.
/// @param parameters  the call's parameter struct; those of calls of one kind begin with the same fields
void append_copy(cupti::DriverCall call, const void* parameters, std::vector<raw::BufferUse>& uses);

/// The same for the nodes of graphs.
void append_copy_node(const CUDA_MEMCPY3D& copy, std::vector<raw::BufferUse>& uses);
void append_memset_node(const CUDA_MEMSET_NODE_PARAMS& memset, std::vector<raw::BufferUse>& uses);

}  // namespace tidepool::inject
