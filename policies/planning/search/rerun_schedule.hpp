// Search for what to keep and what to run again, op by op, where every op writes one new value.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace tidepool {

/// Ops in the order of their first runs. What op i makes is value i.
struct RerunProblem {
  std::vector<std::vector<std::uint32_t>> inputs;  ///< by op: values that it reads, each once, all of earlier ops
  std::vector<std::int64_t> cost;                  ///< by op: ns for each run
  std::vector<std::int64_t> bytes;                 ///< by op: of its value
  std::int64_t room = 0;                           ///< bytes for all values that are held
  std::int32_t most_runs = 0;                      ///< of one op; 0: any number

  std::uint32_t ops() const { return static_cast<std::uint32_t>(cost.size()); }
};

/// All runs in order. Between two first runs, ops run again at most once each and in their order.
struct RerunSchedule {
  std::vector<std::uint32_t> runs;
  std::int64_t again = 0;  ///< ns of the runs that are not the first ones
};

struct RerunSearch {
  std::int64_t steps = 200'000'000;  ///< effort: runs that are looked at over all schedules tried
  std::int64_t enough = 0;           ///< ns: stops at a schedule that runs no more again
  std::uint64_t seed = 1;
};

/// Simulated annealing. Between two uses of a value by first runs (and after the last one), the value is held from the
/// first of them up to some stage, and again from some stage up to the second; where it is needed and not held, its op
/// runs again, and so do, recursively, those whose values that reads. Each state of the search is such a pair of stages
/// for every interval between uses; a move changes one, or two that overlap. Rounds begin with the best.
/// What a schedule needs beyond the room is paid for at a price that rises while schedules exceed it and falls while
/// they fit. Deterministic.
/// @return  the best schedule that fits; none: none was found
std::optional<RerunSchedule> search_reruns(const RerunProblem& problem, const RerunSearch& search);

}  // namespace tidepool
