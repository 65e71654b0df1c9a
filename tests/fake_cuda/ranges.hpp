// The memory that a kernel launch of the program touches.
#pragma once

#include <functional>
#include <string>

namespace tidepool::cuda {

/// Returns a check that all memory that a launch touches is allocated, to be called just before the launch runs. The
/// arguments are read by range_check(), not by the check.
std::function<bool()> range_check(const std::string& kernel, void** arguments);

/// ns that a launch takes for its memory accesses or products, in addition to the time of its code.
double memory_time(const std::string& kernel, void** arguments);

}  // namespace tidepool::cuda
