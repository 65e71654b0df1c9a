// The memory that a kernel launch of the program touches.
#pragma once

#include <functional>
#include <string>

namespace tidepool::cuda {

/// Returns a check, for the moment before the launch runs, that all memory it touches is allocated. Reads the arguments
/// now.
std::function<bool()> range_check(const std::string& kernel, void** arguments);

/// ns that a launch takes for its memory accesses, besides the time of its code.
double memory_time(const std::string& kernel, void** arguments);

}  // namespace tidepool::cuda
