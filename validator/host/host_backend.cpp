#include "validator/host/host_backend.hpp"

#include <algorithm>
#include <chrono>
#include <memory>
#include <thread>
#include <utility>

#include "validator/execution/execute.hpp"
#include "validator/execution/fingerprint.hpp"
#include "validator/execution/scale.hpp"
#include "validator/execution/words.hpp"
#include "validator/host/host_link.hpp"
#include "validator/host/lanes.hpp"

namespace tidepool {
namespace {

/// An operand with the memory behind it.
struct Bound {
  VersionId version;
  Content content;
  std::size_t held = 0;                  ///< words of the place
  std::shared_ptr<std::uint64_t[]> own;  ///< keeps separate memory alive until the last task has ended
};

struct Job {
  TaskKind kind = TaskKind::kRun;
  std::uint32_t lane = 0;
  std::size_t action = 0;
  OpId op;
  std::uint64_t seed = 0;  ///< of a run
  std::vector<Bound> reads, writes;
  std::shared_ptr<const Expected> expected;
};

/// The log of one lane. Only the lane's thread writes it, or the caller's thread in a run without threads.
struct LaneLog {
  std::int64_t tasks = 0;
  Bytes bytes, read, corrupt;
  Nanos busy;
  std::optional<Corruption> first;
  std::shared_ptr<const Expected> expected_then;  ///< at the time of the first corruption
  std::vector<TaskTime> times;
};

class HostBackend final : public Backend {
 public:
  HostBackend(const PlannedStep& step, const Plan& plan, const HostOptions& options)
      : trace_{step.trace()},
        reference_{step},
        plan_{plan},
        options_{options},
        lanes_{static_cast<std::uint32_t>(trace_.data().streams.size())},
        scale_{trace_, plan, options.arena},
        arena_{zero_words(scale_.arena_words())},
        expected_{std::make_shared<Expected>(reference_.first())},
        launches_{reference_.recorded()},
        logs_(lanes_.count()),
        start_{Clock::now()} {
    if (options.threads) threads_.emplace(lanes_.count(), options.patience);
  }

  void open(std::uint32_t place, Bytes offset, Bytes size, bool) override {
    if (place >= memory_.size()) memory_.resize(place + 1);
    Memory& memory = memory_[place];
    memory.offset = offset;
    if (offset == kNoAddress) {
      memory.held = scale_.words(size);
      memory.own = std::shared_ptr<std::uint64_t[]>{zero_words(memory.held)};
      memory.words = memory.own.get();
    } else {
      memory.words = arena_.get() + scale_.word(offset);
      memory.held = scale_.word(offset + size) - scale_.word(offset);
    }
  }

  void close(std::uint32_t place) override { memory_[place] = {}; }

  void submit(const Task& task) override {
    Job job{task.kind, task.lane, task.action, task.op, 0, {}, {}, expected_};
    for (const Operand& operand : task.reads) job.reads.push_back(bind(operand));
    for (const Operand& operand : task.writes) job.writes.push_back(bind(operand));
    if (task.kind == TaskKind::kRun) job.seed = launches_.seed(reference_.op(task.op), options_.faults.redraw);
    if (!threads_) return perform(job);
    std::vector<Wait> waits(task.waits.begin(), task.waits.end());
    std::erase_if(waits, [&](Wait wait) { return ignored(wait.lane); });
    actions_.resize(lanes_.count());
    actions_[task.lane].push_back(static_cast<std::uint32_t>(task.action));
    threads_->submit(task.lane, std::move(waits), [this, moved = std::move(job)] { perform(moved); });
  }

  void next_iteration() override {
    expected_ = std::make_shared<Expected>(reference_.next(*expected_));
    launches_.next_iteration();
  }

  HostReport finish(Bytes peak) {
    HostReport report;
    const auto stuck = threads_ ? threads_->finish() : std::nullopt;
    threads_.reset();
    report.wall = since(start_);
    report.peak = peak;
    report.unit = scale_.unit();
    collect(report);
    if (stuck) {
      report.outcome = HostOutcome::kStuck;
      report.message = describe_stuck(name(stuck->waiting), name(stuck->awaited), options_.patience);
    } else if (report.first) {
      report.outcome = HostOutcome::kCorrupt;
      report.message = describe(plan_, *report.first);
    }
    return report;
  }

 private:
  struct Memory {
    Bytes offset;
    std::uint64_t* words = nullptr;
    std::size_t held = 0;
    std::shared_ptr<std::uint64_t[]> own;
  };

  Bound bind(const Operand& operand) const {
    const Bytes size = trace_.size(operand.version);
    if (size == Bytes{}) return {operand.version, {}, 0, nullptr};
    const Memory& memory = memory_[operand.place];
    const std::size_t count = scale_.words(size);
    const std::size_t covered = memory.own ? count : scale_.word(memory.offset + size) - scale_.word(memory.offset);
    return {operand.version, {memory.words, count, covered}, memory.held, memory.own};
  }

  bool ignored(std::uint32_t lane) const {
    if (!options_.faults.ignore_waits_on) return false;
    switch (*options_.faults.ignore_waits_on) {
      case Verb::kSwapOut:
        return lane == lanes_.d2h();
      case Verb::kSwapIn:
        return lane == lanes_.h2d();
      case Verb::kRun:
        return lane < lanes_.streams;
      default:
        return false;
    }
  }

  void perform(const Job& job) {
    const auto start = Clock::now();
    LaneLog& log = logs_[job.lane];
    const bool transfer = job.kind == TaskKind::kSwapOut || job.kind == TaskKind::kSwapIn;
    if (transfer && options_.threads && options_.faults.late_copies > Nanos{})
      std::this_thread::sleep_for(std::chrono::nanoseconds{options_.faults.late_copies.count()});
    switch (job.kind) {
      case TaskKind::kFill:
        fill_words(job.writes[0].content, job.expected->content[job.writes[0].version.index()]);
        break;
      case TaskKind::kRun:
        run(job, log);
        break;
      case TaskKind::kCopy:
      case TaskKind::kSwapOut:
      case TaskKind::kSwapIn:
        copy_words(job.writes[0].content, job.reads[0].content);
        add_capped(log.bytes, trace_.size(job.reads[0].version));
        break;
      case TaskKind::kClear:
        clear_words(job.writes[0].content.words, job.writes[0].held);
        break;
      case TaskKind::kCheck:
        compare(job, job.reads[0], log);
        break;
    }
    const Nanos took = since(start);
    ++log.tasks;
    log.busy += took;
    const bool timed = transfer || job.kind == TaskKind::kCopy || job.kind == TaskKind::kRun;
    if (timed && options_.detail) log_time(job, log, start, took);
  }

  void log_time(const Job& job, LaneLog& log, Clock::time_point start, Nanos took) const {
    const Nanos since_start{std::chrono::duration_cast<std::chrono::nanoseconds>(start - start_).count()};
    const VersionId moved = job.kind == TaskKind::kRun ? VersionId{} : job.reads[0].version;
    log.times.push_back({job.action, job.kind, job.lane, job.op, moved, since_start, since_start + took});
  }

  void run(const Job& job, LaneLog& log) {
    std::vector<std::uint64_t> found;
    found.reserve(job.reads.size());
    for (const Bound& input : job.reads) found.push_back(compare(job, input, log));
    const std::uint64_t content = op_content(job.seed, found);
    for (const Bound& output : job.writes) {
      fill_words(output.content, output_content(content, reference_.version(output.version).value()));
      add_capped(log.bytes, trace_.size(output.version));
    }
  }

  /// Reads a whole buffer. @return  the expected content if all words are right, else a number made from the words
  std::uint64_t compare(const Job& job, const Bound& input, LaneLog& log) {
    const std::uint64_t expected = job.expected->content[input.version.index()];
    const Bytes size = trace_.size(input.version);
    add_capped(log.bytes, size);
    add_capped(log.read, size);
    std::size_t wrong = 0, first = 0;
    std::uint64_t found = 0;
    input.content.for_each([&](std::uint64_t& word, std::size_t i) {
      const std::uint64_t value = load(word);
      if (value != word_of(expected, i) && wrong++ == 0) first = i, found = value;
    });
    if (wrong == 0) return expected;

    const Int128 bytes = static_cast<Int128>(scale_.unit().count()) * static_cast<std::int64_t>(wrong);
    add_capped(log.corrupt, Bytes{static_cast<std::int64_t>(std::min<Int128>(bytes, size.count()))});
    if (!log.first || job.action < log.first->action) {
      log.first = {job.action,
                   job.op,
                   trace_.version(input.version).buffer,
                   input.version,
                   scale_.unit() * static_cast<std::int64_t>(first),
                   word_of(expected, first),
                   found,
                   {}};
      log.expected_then = job.expected;
    }
    std::uint64_t content = 0;
    for (std::size_t i = 0; i < input.content.covered; ++i) content += part_of_wrong(load(input.content.words[i]), i);
    return content;
  }

  void collect(HostReport& report) const {
    const LaneLog* earliest = nullptr;
    for (std::uint32_t lane = 0; lane < lanes_.count(); ++lane) {
      const LaneLog& log = logs_[lane];
      report.lanes.push_back({lanes_.name(trace_, lane), log.tasks, log.bytes, log.busy});
      add_capped(report.read, log.read);
      add_capped(report.corrupt, log.corrupt);
      report.times.insert(report.times.end(), log.times.begin(), log.times.end());
      if (log.first && (earliest == nullptr || log.first->action < earliest->first->action)) earliest = &log;
    }
    if (earliest == nullptr) return;
    report.first = earliest->first;
    report.first->found_is = identify(trace_, *report.first, *earliest->expected_then, scale_.unit());
  }

  std::string name(Wait task) const {
    return describe_task(trace_, plan_, lanes_, task.lane, actions_[task.lane][task.number - 1]);
  }

  const Trace& trace_;
  const Reference reference_;
  const Plan& plan_;
  const HostOptions& options_;
  const LaneTable lanes_;
  const Scale scale_;
  const WordArray arena_;
  std::shared_ptr<const Expected> expected_;
  std::vector<Memory> memory_;  ///< by place
  Launches launches_;
  std::vector<std::vector<std::uint32_t>> actions_;  ///< by lane and task number, for messages
  std::vector<LaneLog> logs_;
  const Clock::time_point start_;
  std::optional<Lanes> threads_;  // last, so that it ends first
};

}  // namespace

HostReport execute_on_host(const Trace& trace, const Plan& plan, const HostOptions& options) {
  const PlannedStep step{trace, plan};
  require_known(step.trace(), plan);
  HostBackend backend{step, plan, options};
  const Bytes peak = execute(step.trace(), plan, {options.copy_on_write}, backend);
  return backend.finish(peak);
}

}  // namespace tidepool
