// Memory of an NVIDIA GPU, through the driver's own functions.
#pragma once

#include <memory>
#include <string>

#include "validator/live/planned_allocator.hpp"

namespace tidepool {

/// Device memory of GPU `device`; the driver library is found at run time, so that this is built without CUDA.
/// @param why  the reason, if the result is null
std::unique_ptr<MemorySource> device_memory(int device, std::string& why);

}  // namespace tidepool
