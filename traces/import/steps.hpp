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

/// The complete steps, in order, of a job that repeats its step at least once; none if nothing that repeats may be a
/// step.
///
/// Steps are alike but not equal: the first one makes the optimizer's state, and a log is written now and then. So a
/// period explains an op if the short piece of the program around it occurs again about one period later: at most an
/// eighth of the period and at most 32 ops off. Loops within a step (over layers or micro-batches) leave out some kinds
/// of ops. So the result is the shortest of the periods that explain most kinds of ops: at least 0.6 of the kinds that
/// any period explains, and 0.55 of those that recur. A longer period replaces it if it explains at least 1/500 more of
/// the ops, plus 3, as does a period that also contains the optimizer. One exception: the longer period is an epoch,
/// and the shorter one is the step, if the longer one is more than 32 times as long and the shorter one explains nine
/// tenths of the ops and eight tenths of the kinds that the longer one explains. For all lengths, a row of equal ops
/// counts as one op.
///
/// A step ends with about as many live bytes as it begins with; a loop whose rounds add or free bytes is a loop over
/// layers. A step begins where few bytes are live.
/// @param names       by op: equal numbers for equal names, counted from 0
/// @param live_bytes  by op: bytes of device memory that are live when it is launched, at least 0; empty = not known
/// O(n log n) for n ops.
std::vector<FoundStep> find_steps(std::span<const std::uint32_t> names, std::span<const std::int64_t> live_bytes = {});

}  // namespace tidepool
