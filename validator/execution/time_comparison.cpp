#include "validator/execution/time_comparison.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace tidepool {
namespace {

/// Total time in which compute lanes waited before their next task.
Nanos stall_of(const Trace& trace, std::vector<TaskTime> times) {
  std::stable_sort(times.begin(), times.end(), [](const TaskTime& a, const TaskTime& b) { return a.begin < b.begin; });
  std::vector<Nanos> free(trace.data().streams.size());
  Nanos stall{};
  for (const TaskTime& time : times) {
    if (time.lane >= free.size()) continue;
    stall += std::max(time.begin - free[time.lane], Nanos{});
    free[time.lane] = time.end;
  }
  return stall;
}

double relative(Nanos measured, Nanos predicted) {
  return predicted > Nanos{} ? static_cast<double>(measured.count()) / static_cast<double>(predicted.count()) - 1 : 0;
}

}  // namespace

Nanos predicted_time(const Trace& trace, const Machine& machine, const TaskTime& time) {
  switch (time.kind) {
    case TaskKind::kRun:
      return trace.op(time.op).duration;
    case TaskKind::kCopy:
      return transfer_time(trace.size(time.version), machine.device_copy);
    case TaskKind::kSwapOut:
      return machine.d2h.time(trace.size(time.version));
    case TaskKind::kSwapIn:
      return machine.h2d.time(trace.size(time.version));
    case TaskKind::kFill:
    case TaskKind::kClear:
    case TaskKind::kCheck:
      break;
  }
  return {};
}

TimeComparison compare_times(const Trace& trace, const Machine& machine, const Totals& predicted,
                             const ExecutionReport& measurement) {
  TimeComparison result;
  result.predicted = predicted.makespan;
  result.measured = *measurement.measured;
  result.error = relative(result.measured, result.predicted);
  result.predicted_stall = predicted.stall.compute;
  result.measured_stall = stall_of(trace, measurement.times);
  for (const LaneReport& lane : measurement.lanes) result.lanes.push_back({.name = lane.name});
  std::vector<double> errors;
  Nanos most{-1};
  for (const TaskTime& time : measurement.times) {
    const TaskComparison task{time, predicted_time(trace, machine, time), time.end - time.begin};
    LaneComparison& lane = result.lanes[time.lane];
    ++lane.tasks;
    lane.predicted += task.predicted;
    lane.measured += task.measured;
    const Nanos beside{std::abs((task.measured - task.predicted).count())};
    if (beside > most) result.worst = result.tasks.size(), most = beside;
    if (time.kind != TaskKind::kRun) errors.push_back(std::abs(relative(task.measured, task.predicted)));
    result.tasks.push_back(task);
  }
  if (errors.empty()) return result;
  const auto middle = errors.begin() + static_cast<std::ptrdiff_t>(errors.size() / 2);
  std::nth_element(errors.begin(), middle, errors.end());
  result.copy_error = *middle;
  return result;
}

const ExecutionReport& median_run(const std::vector<ExecutionReport>& runs) {
  std::vector<const ExecutionReport*> sorted;
  for (const ExecutionReport& run : runs) sorted.push_back(&run);
  std::sort(sorted.begin(), sorted.end(),
            [](const ExecutionReport* a, const ExecutionReport* b) { return *a->measured < *b->measured; });
  return *sorted[sorted.size() / 2];
}

}  // namespace tidepool
