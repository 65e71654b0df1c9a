#include "validator/host/host_timing.hpp"

#include <sys/prctl.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <optional>
#include <thread>
#include <vector>

#include "simulator/ordered_step.hpp"
#include "validator/execution/execute.hpp"
#include "validator/execution/time_comparison.hpp"
#include "validator/host/host_link.hpp"
#include "validator/host/lanes.hpp"

namespace tidepool {
namespace {

/// `time` in a run whose ops take `scale` times their duration. At most 36 years, so that the sum of two does not
/// overflow.
Nanos scaled(Nanos time, double scale) {
  return Nanos{static_cast<std::int64_t>(std::min(scale * static_cast<double>(time.count()), 0x1p60))};
}

bool is_transfer(TaskKind kind) { return kind == TaskKind::kSwapOut || kind == TaskKind::kSwapIn; }

class TimedHost final : public Backend {
 public:
  TimedHost(const Trace& trace, const Plan& plan, const HostTimingOptions& options)
      : trace_{trace},
        plan_{plan},
        options_{options},
        table_{static_cast<std::uint32_t>(trace.data().streams.size())},
        tasks_(table_.count()),
        bytes_(table_.count()) {
    Nanos longest{};
    for (const Op& op : trace.ops()) longest = std::max(longest, op.duration);
    for (const Buffer& buffer : trace.buffers())
      longest = std::max({longest, options.machine.h2d.time(buffer.size), options.machine.d2h.time(buffer.size)});
    patience_ = options.patience + scaled(longest, options.time_scale);
    lanes_.emplace(table_.count(), patience_, Lanes::Begin::kWhenAsked);
  }

  void open(std::uint32_t, Bytes, Bytes, bool) override {}
  void close(std::uint32_t) override {}
  void next_iteration() override {}

  void submit(const Task& task) override {
    const VersionId moved = task.kind == TaskKind::kRun || task.reads.empty() ? VersionId{} : task.reads[0].version;
    TimedTask& own = tasks_[task.lane].emplace_back();
    own.time = {task.action, task.kind, task.lane, task.op, moved, {}, {}};
    own.waits.assign(task.waits.begin(), task.waits.end());
    lanes_->submit(task.lane, own.waits, [this, &own, number = task.number] { perform(own, number); });
    for (const Operand& operand : task.reads) add_capped(bytes_[task.lane], trace_.size(operand.version));
    if (task.kind != TaskKind::kRun) return;
    for (const Operand& operand : task.writes) add_capped(bytes_[task.lane], trace_.size(operand.version));
  }

  ExecutionReport finish(Bytes peak) {
    start_ = Clock::now();
    const std::optional<Lanes::Stuck> stuck = lanes_->finish();
    ExecutionReport report;
    report.wall = now();
    report.peak = peak;
    lanes_.reset();
    if (stuck) {
      report.outcome = ExecutionOutcome::kStuck;
      report.message = describe_stuck(name(stuck->waiting), name(stuck->awaited), patience_);
    } else {
      report.measured = scaled(report.wall, 1 / options_.time_scale);
    }
    for (std::uint32_t lane = 0; lane < table_.count(); ++lane) {
      report.lanes.push_back({.name = table_.name(trace_, lane), .bytes = bytes_[lane]});
      if (!stuck) collect(tasks_[lane], report);
    }
    return report;
  }

 private:
  struct TimedTask {
    TaskTime time;
    std::vector<Wait> waits;
  };

  Nanos now() const { return since(start_); }

  void sleep_until(Nanos time) const {
    prctl(PR_SET_TIMERSLACK, 1UL);  // precise wake-ups of this thread
    std::this_thread::sleep_until(start_ + std::chrono::nanoseconds{time.count()});
  }

  /// The latest end of the tasks that this task had to wait for: the one before it in its lane, and those in `waits`.
  Nanos allowed(const TimedTask& task, std::uint32_t number) const {
    Nanos time = number > 1 ? tasks_[task.time.lane][number - 2].time.end : Nanos{};
    for (const Wait wait : task.waits) time = std::max(time, tasks_[wait.lane][wait.number - 1].time.end);
    return time;
  }

  void perform(TimedTask& task, std::uint32_t number) {
    TaskTime& time = task.time;
    if (!is_transfer(time.kind)) {
      time.begin = allowed(task, number);
      time.end = time.begin + planned(time);
      if (time.end > time.begin) sleep_until(time.end);
      return;
    }
    const bool is_out = time.kind == TaskKind::kSwapOut;
    if (options_.links && number == 1) HostLinks::take_core(is_out);
    time.begin = now();
    if (options_.links)
      (is_out ? options_.links->out : options_.links->in).copy(trace_.size(time.version));
    else
      sleep_until(time.begin + planned(time));
    time.end = now();
  }

  Nanos planned(const TaskTime& time) const {
    return scaled(predicted_time(trace_, options_.machine, time), options_.time_scale);
  }

  void collect(const std::deque<TimedTask>& tasks, ExecutionReport& report) const {
    LaneReport& lane = report.lanes.back();
    for (const TimedTask& task : tasks) {
      TaskTime time = task.time;
      time.begin = scaled(time.begin, 1 / options_.time_scale);
      time.end = scaled(time.end, 1 / options_.time_scale);
      ++lane.tasks;
      lane.busy += time.end - time.begin;
      if (time.kind != TaskKind::kRun && time.kind != TaskKind::kCopy && !is_transfer(time.kind)) continue;
      report.times.push_back(time);
    }
  }

  std::string name(Wait task) const {
    return describe_task(trace_, plan_, table_, task.lane, tasks_[task.lane][task.number - 1].time.action);
  }

  const Trace& trace_;
  const Plan& plan_;
  const HostTimingOptions& options_;
  const LaneTable table_;
  Nanos patience_;
  std::vector<std::deque<TimedTask>> tasks_;  ///< by lane; times since start_, not yet divided by the time scale
  std::vector<Bytes> bytes_;                  ///< by lane, read and written
  Clock::time_point start_;
  std::optional<Lanes> lanes_;  // last, so that it ends first
};

}  // namespace

ExecutionReport time_on_host(const Trace& trace, const Plan& plan, const HostTimingOptions& options) {
  const PlannedStep step{trace, plan};
  require_known(step.trace(), plan);
  TimedHost backend{step.trace(), plan, options};
  return backend.finish(execute(step.trace(), plan, {options.copy_on_write, false}, backend));
}

}  // namespace tidepool
