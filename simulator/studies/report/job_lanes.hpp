// Work of each rank of a simulated job over time, and the time at which its tensors exceed its memory.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "simulator/studies/ranks/job_run.hpp"

namespace tidepool {

struct Span {
  Nanos begin, end;
  bool operator==(const Span&) const = default;
};

/// Work of a rank since the start of the job, over all its streams; sorted, and disjoint within a kind.
struct JobLane {
  std::vector<Span> computes;  ///< kernels, copies and memsets
  std::vector<Span> moves;     ///< collectives that move data
  std::vector<Span> waits;     ///< waits for the last rank of a collective
};

/// The lane of a rank. Two spans of a kind with a pause of at most `finest` between them become one.
JobLane lane_of(const RankProgram& program, const std::vector<OpTimes>& ops,
                const std::vector<CollectiveTimes>& collectives, Nanos finest);

/// Memory of a rank's tensors in the job. A buffer takes its bytes when the op that follows its allocation starts.
struct JobMemory {
  Bytes peak;
  Nanos peak_at;
  std::optional<Nanos> exceeds_at;  ///< the first time at which live bytes exceed the capacity
};

JobMemory memory_of(const Trace& trace, const std::vector<OpTimes>& ops, Bytes capacity);

/// A job as a report shows it, with a lane for each rank.
struct ReportedJob {
  std::string name;
  LoadedJob job;
  JobResult result;
  std::vector<Bytes> capacities;  ///< by rank
};

/// {"name": ..., "makespan_ns": 9, "ranks": [{"computes": [begin, end, ...], ...}], "path": [...], "first_out": 0}; in
/// ns; "first_out" is the rank whose tensors exceed its memory first, or null.
nlohmann::ordered_json to_json(const ReportedJob& job);

}  // namespace tidepool
