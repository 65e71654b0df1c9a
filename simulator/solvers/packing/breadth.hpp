// Shared objects: buffers that never live together use one piece of memory.
#pragma once

#include <vector>

#include "simulator/instance.hpp"

namespace tidepool {

/// TFLite's greedy by breadth. It visits positions in decreasing order of the bytes that live there, and assigns the
/// remaining buffers of a position in decreasing order of size. A buffer goes to the smallest shared object that is
/// large enough and free during its life; else to the largest free object, which grows; else to a new one. Objects are
/// then stacked above fixed items, in the order in which they were made. O(n log n), and for each buffer one search in
/// every object that is tried.
/// Source: Pisarchyk & Lee, "Efficient Memory Management for Deep Neural Net Inference", arXiv 2001.03288, section 4.2;
/// tensorflow/lite/delegates/gpu/common/memory_management/greedy_by_breadth_assignment.cc, 2025.
std::vector<Bytes> place_by_breadth(const Instance& instance);

}  // namespace tidepool
