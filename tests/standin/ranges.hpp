// The memory that a launch of a kernel of the program touches.
#pragma once

#include <functional>
#include <string>

namespace tidepool::cuda {

/// Tells, once the launch is about to run, whether all memory that it touches is allocated. The arguments are read now.
std::function<bool()> range_check(const std::string& kernel, void** arguments);

/// ns that a launch takes for its memory, beside what its code takes.
double memory_time(const std::string& kernel, void** arguments);

}  // namespace tidepool::cuda
