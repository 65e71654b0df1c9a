// Search for the steps of a training job in the order of its ops.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace tidepool {

/// Ops [first, last) of one step.
struct FoundStep {
  std::size_t first = 0, last = 0;
  bool operator==(const FoundStep&) const = default;
};

/// The complete steps of a job that repeats its step at least once, in order; none if nothing repeats that may be one.
///
/// Steps are alike but not equal: the first one makes the optimizer's state, a log is written now and then. So a period
/// is measured by where short pieces of the program are found again one period later, give or take an eighth of it, and
/// what repeats within a step (layers, micro-batches) by what it leaves out: of the periods that explain most kinds of
/// ops the shortest is taken, and a longer one instead if it explains at least 1/500 more of the ops, as one does that
/// has the optimizer too. A loop of more than 32 rounds that is nine tenths of it is the loop of steps, and it an
/// epoch. Rows of equal ops count as one.
///
/// A step ends with as many live bytes as it begins with: a loop whose rounds add or free bytes is one of layers. A
/// step begins where few bytes are live.
/// @param names       by op: equal numbers for equal names, counted from 0
/// @param live_bytes  by op: bytes of device memory that are live when it is launched, at least 0; empty = not known
/// O(n log n) for n ops.
std::vector<FoundStep> find_steps(std::span<const std::uint32_t> names, std::span<const std::int64_t> live_bytes = {});

}  // namespace tidepool
