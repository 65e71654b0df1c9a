// A search for values to keep and ops to rerun, in steps in which every op writes one new value.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace tidepool {

/// Ops in the order of their first runs. Op i makes value i.
struct RerunProblem {
  std::vector<std::vector<std::uint32_t>> inputs;  ///< by op: values that it reads, each once, all of earlier ops
  std::vector<std::int64_t> cost;                  ///< by op: ns for each run
  std::vector<std::int64_t> bytes;                 ///< by op: bytes of its value
  std::int64_t room = 0;                           ///< bytes for all resident values
  std::int32_t most_runs = 0;                      ///< most runs of one op; 0: any number

  std::uint32_t ops() const { return static_cast<std::uint32_t>(cost.size()); }
};

/// All runs in order. Between two first runs, ops run again at most once each and in their order.
struct RerunSchedule {
  std::vector<std::uint32_t> runs;
  std::int64_t again = 0;  ///< ns of all reruns
};

struct RerunSearch {
  std::int64_t steps = 200'000'000;  ///< effort: ops and values visited
  std::int64_t enough = 0;           ///< ns: stops at a schedule with at most this rerun time
  std::uint64_t seed = 1;
};

/// Simulated annealing. The first runs that use a value divide its life into intervals (the last one begins with the
/// last use). In each interval the value is kept from the first use up to one stage, and again from another stage up to
/// the second use or a rerun before it. If it is needed in between, its op is rerun, and recursively the producers of
/// absent inputs. A state of the search is such stages for every interval. A move changes one interval, two that
/// overlap, or that of a rerun value and those of its inputs. Many short searches begin with everything kept, and a
/// longer one with the best of their states; each has rounds that begin with its best state. Bytes beyond `room` have a
/// price, which rises while schedules exceed it and falls while they fit. Deterministic.
/// @return  the best schedule that fits; none if none was found
std::optional<RerunSchedule> search_reruns(const RerunProblem& problem, const RerunSearch& search);

}  // namespace tidepool
