// Meaning of the names and numbers that CUDA gives to operations.
#pragma once

#include <cstddef>
#include <string_view>

namespace tidepool {

/// Whether a kernel is of a communication library (NCCL, RCCL), by its plain name.
bool names_collective(std::string_view kernel);

/// "memcpy HtoD" for CUPTI's (and Nsight Systems') copy kind 1, and so on; "memcpy" for unknown ones.
std::string_view copy_name(std::size_t kind);

}  // namespace tidepool
