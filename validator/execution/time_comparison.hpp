// Comparison of a run on real memory with its predicted times.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "simulator/machine.hpp"
#include "simulator/result.hpp"
#include "traces/trace.hpp"
#include "validator/execution/execution_report.hpp"

namespace tidepool {

/// The predicted time of an op or a copy that nothing else slows down; 0 for other tasks.
Nanos predicted_time(const Trace& trace, const Machine& machine, const TaskTime& time);

struct TaskComparison {
  TaskTime time;
  Nanos predicted, measured;
};

struct LaneComparison {
  std::string name;
  std::int64_t tasks = 0;               ///< ops and copies
  Nanos predicted = {}, measured = {};  ///< time that they took
};

struct TimeComparison {
  Nanos predicted, measured;              ///< of the step
  double error = 0;                       ///< measured / predicted - 1; 0 if 0 was predicted
  Nanos predicted_stall, measured_stall;  ///< total time in which compute lanes waited
  std::vector<LaneComparison> lanes;
  std::vector<TaskComparison> tasks;
  std::optional<std::size_t> worst;  ///< index in `tasks`: the largest difference; none without tasks
  /// Median of |measured / predicted - 1| over the copies; nothing without copies.
  std::optional<double> copy_error;
};

/// @param measurement  of a timed run
TimeComparison compare_times(const Trace& trace, const Machine& machine, const Totals& predicted,
                             const ExecutionReport& measurement);

/// The run with the median time. @param runs  not empty, all measured
const ExecutionReport& median_run(const std::vector<ExecutionReport>& runs);

}  // namespace tidepool
