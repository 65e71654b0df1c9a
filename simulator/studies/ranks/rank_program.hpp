// A rank's recorded step: the dependencies of every op, and the op's own time.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "traces/job/job.hpp"

namespace tidepool {

/// Times of an op that do not depend on other ops and ranks. An op starts `lag` after the last of these: its launch,
/// the end of the previous op on its stream, and the ends of the ops that it is ordered after. The host launches the op
/// `gap` after it was done with the previous op of the trace. It is done with a host wait when the wait ends, and with
/// any other op when it has launched the op.
struct RankOp {
  StreamId stream = {};
  Nanos gap = {};       ///< negative if another thread launched the op earlier
  Nanos lag = {};       ///< at least 0; includes delays that the recording does not explain
  Nanos duration = {};  ///< as recorded; not used for a collective
  bool host_wait = false;
  std::uint32_t collective = kNone;  ///< index into the job's collectives
  std::uint32_t first_before = 0;    ///< the ops that this op is ordered after: [first_before, last_before) of `before`
  std::uint32_t last_before = 0;

  static constexpr std::uint32_t kNone = 0xffff'ffff;
};

struct RankProgram {
  std::vector<RankOp> ops;  ///< by op of the trace; the host issued them in this order
  std::vector<std::uint32_t> before;
  std::size_t streams = 0;
  Nanos start;         ///< when the rank's trace begins, since the start of the job
  Nanos recorded_end;  ///< of its last op, since the start of the job

  std::span<const std::uint32_t> ordered_after(const RankOp& op) const {
    return std::span{before}.subspan(op.first_before, op.last_before - op.first_before);
  }
};

/// The programs of all ranks. Ops without recorded times start as early as their dependencies allow. So do all ops of a
/// rank where a model estimated their times, and its host takes issue_time() for each of them.
/// @throws InputError  "job.json: rank 2: op 31, 'ncclKernel', is a collective of no group; expected all to be joined"
std::vector<RankProgram> rank_programs(const LoadedJob& job, const std::string& path);

/// The part of a rank's own time that changes.
enum class OwnTime : std::uint8_t { kAll, kOps, kHost };

/// The program with its own time multiplied by `factor`: the time of ops other than collectives and host waits, the
/// host's time between launches and in host waits, or both.
RankProgram scaled(RankProgram program, double factor, OwnTime what);

}  // namespace tidepool
