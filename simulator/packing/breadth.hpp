// Shared objects: buffers that never live together use one piece of memory.
#pragma once

#include <vector>

#include "simulator/packing/instance.hpp"

namespace tidepool {

/// TFLite's greedy by breadth: positions in decreasing order of the bytes that live there, at each of them the buffers
/// that are not assigned yet in decreasing order of size. A buffer goes to the smallest shared object that is large
/// enough and free during its life, else to the largest that is free, which grows, else to a new one. Objects are then
/// stacked, in the order in which they were made, above fixed items. O(n log n), and for each buffer one search in the
/// object for every object that is tried.
/// Source: Pisarchyk & Lee, "Efficient Memory Management for Deep Neural Net Inference", arXiv 2001.03288, section 4.2;
/// tensorflow/lite/delegates/gpu/common/memory_management/greedy_by_breadth_assignment.cc, 2025.
std::vector<Bytes> place_by_breadth(const Instance& instance);

}  // namespace tidepool
