// Simulation of a job: each rank runs by itself, until a collective in which ranks wait for each other.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "simulator/studies/ranks/rank_program.hpp"

namespace tidepool {

/// What an op waited for last: its launch by the host, the previous op on its stream, or an op that it is ordered
/// after.
enum class Awaited : std::uint8_t { kHost, kStream, kOrder };

/// Times of one op, since the start of the job.
struct OpTimes {
  Nanos launch, start, end;  ///< the start of a collective is the arrival of its rank
  Awaited awaited = Awaited::kHost;
  std::uint32_t after = RankOp::kNone;  ///< kStream, kOrder: the op that it waited for
};

struct CollectiveTimes {
  Nanos begin;           ///< arrival of the last rank
  Nanos end;             ///< the same for all ranks
  std::size_t last = 0;  ///< the rank that arrived last; one of them if several did
};

struct JobTimes {
  std::vector<std::vector<OpTimes>> ranks;   ///< by rank, by op
  std::vector<CollectiveTimes> collectives;  ///< by collective
  Nanos makespan;                            ///< end of the last op of all ranks
};

/// Runs all ranks. RankOp defines the start of an op. A collective begins when the last rank of its group has arrived;
/// each stream of a rank reaches its collectives in their order. The collective takes its cost, and ends for all ranks
/// together. Times are those of the longest path, so they do not depend on the number of threads. O(ops).
/// @param costs    times of the collectives
/// @param threads  at least 1
/// @throws InputError  "job.json: no rank can go on: rank 0 is in all_reduce (collective 1) and waits for rank 1;
///                     rank 1 is in all_to_all (collective 0) and waits for rank 0; expected one order on all ranks"
JobTimes simulate_job(const LoadedJob& job, const std::string& path, const std::vector<RankProgram>& programs,
                      const std::vector<Nanos>& costs, std::size_t threads);

/// The recorded costs of all collectives, from the job file.
std::vector<Nanos> recorded_costs(const Job& job);

}  // namespace tidepool
