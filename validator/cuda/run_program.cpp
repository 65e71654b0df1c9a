#include "validator/cuda/run_program.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <optional>
#include <utility>
#include <vector>

#include "validator/cuda/kernels.hpp"
#include "validator/cuda/spins.hpp"

namespace tidepool::cuda {
namespace {

constexpr std::size_t kWord = sizeof(std::uint64_t);
constexpr unsigned kThreads = 256;
constexpr std::uint64_t kSubmission = 1'000'000;  ///< ns, longer than the host takes to launch a graph
/// A stream blocks its host when about 1,024 launches wait in it. A blocked host cannot see that the time is up. A
/// command is up to four launches, and three times this number of commands may wait.
constexpr std::size_t kMostUnseen = 80;

template <class T>
Bytes bytes_of(const std::vector<T>& values) {
  return Bytes{static_cast<std::int64_t>(values.size() * sizeof(T))};
}

bool is_copy(TaskKind kind) {
  return kind == TaskKind::kCopy || kind == TaskKind::kSwapOut || kind == TaskKind::kSwapIn;
}
bool compares(TaskKind kind) { return kind == TaskKind::kRun || kind == TaskKind::kCheck; }

class Run {
 public:
  Run(const Gpu& gpu, const Trace& trace, const Plan& plan, const DeviceProgram& program, const RunOptions& options)
      : gpu_{gpu},
        driver_{gpu.driver()},
        trace_{trace},
        plan_{plan},
        program_{program},
        options_{options},
        own_{gpu},
        arena_{memory().arena(words(program.device_words))},
        pinned_{memory().pinned(words(program.host_words))},
        found_(program.stretches.size(), Found{0, ~std::uint64_t{0}, 0, 0}),
        stamps_(program.steps.size() + 1),
        device_works_{
            allocate(gpu, Bytes{static_cast<std::int64_t>(program.steps.size() * sizeof(Work))}, "the steps")},
        device_spans_{allocate(gpu, Bytes{static_cast<std::int64_t>(program.stretches.size() * sizeof(Span))},
                               "the stretches of memory")},
        device_found_{allocate(gpu, bytes_of(found_), "what is found")},
        device_stamps_{allocate(gpu, bytes_of(stamps_), "times")} {
    upload();
    for (std::uint32_t i = 0; i < program.lanes.count(); ++i) {
      streams_.push_back(make_stream(gpu));
      ends_.push_back(make_event(gpu, false));
      for (std::size_t j = 0; j < 2; ++j) seen_.push_back(make_event(gpu, false));
    }
    for (std::uint32_t i = 0; i < program.events; ++i) events_.push_back(make_event(gpu, false));
    submitted_.resize(program.lanes.count());
    if (!options.timed) return;
    spins_.emplace(gpu, program, device_stamps_.get());
    for (const DeviceStep& step : program.steps)
      if (is_copy(step.kind))
        for (std::size_t j = 0; j < 2; ++j) copy_events_.push_back(make_event(gpu, true));
  }

  /// @return  false if the device hangs
  bool execute() {
    const Stream first = streams_[0].get();
    busy_ = true;
    if (options_.graph) {
      driver_(driver_.capture_begin, first, kCaptureRelaxed);
      if (!submit_all()) return false;
      Graph graph = nullptr;
      driver_(driver_.capture_end, first, &graph);
      const Owned<Graph> owned{gpu_, driver_.graph_destroy, graph};
      GraphExec exec = nullptr;
      busy_ = false;  // what was captured has not begun
      driver_(driver_.graph_instantiate, &exec, graph, 0ULL);
      graph_.emplace(gpu_, driver_.graph_exec_destroy, exec);
      // The time leaves out the graph's upload and the host's launch of it.
      driver_(driver_.graph_upload, exec, first);
      busy_ = true;
      driver_(driver_.event_record, end_.get(), first);
      if (!wait_for(gpu_, end_.get(), patience_)) return false;
      if (options_.timed) spins_->spin(first, start_stamp(), kSubmission);
      stamp_begin();
      driver_(driver_.graph_launch, exec, first);
    } else {
      stamp_begin();
      if (!submit_all()) return false;
    }
    driver_(driver_.event_record, end_.get(), first);
    busy_ = !wait_for(gpu_, end_.get(), patience_);
    return !busy_;
  }

  void collect(ExecutionReport& result) {
    download(found_, device_found_);
    download(stamps_, device_stamps_);
    collect_content(result);
    if (options_.timed) collect_times(result);
    if (options_.timed) result.measured = elapsed(gpu_, begin_.get(), end_.get());
  }

  /// "the device is not done after 60 s: stream 7 and d2h still at work; 812 of 5000 commands were given"
  std::string describe_stuck() const {
    std::vector<std::string> busy;
    for (std::uint32_t lane = 0; lane < streams_.size(); ++lane)
      if (driver_.stream_query.status(streams_[lane].get()) == kErrorNotReady)
        busy.push_back(program_.lanes.name(trace_, lane));
    return fmt::format("the device is not done after {}: {} still at work; {} of {} commands were given",
                       to_text(patience_), fmt::join(busy, " and "), given_, program_.commands.size());
  }
  std::size_t given() const { return given_; }
  /// Whether work or a capture may be under way.
  bool busy() const { return busy_; }

 private:
  Nanos patience() const {
    Nanos work{};
    for (const DeviceStep& step : program_.steps) {
      if (step.kind == TaskKind::kRun) work += trace_.op(step.op).duration;
      for (std::size_t i = step.first; i < std::size_t{step.first} + step.reads + step.writes; ++i)
        work += transfer_time(words(program_.stretches[i].covered), BytesPerSecond{500'000'000});
    }
    return options_.patience + work;
  }

  RunMemory& memory() { return options_.memory == nullptr ? own_ : *options_.memory; }
  static Bytes words(std::size_t count) { return Bytes{static_cast<std::int64_t>(count * kWord)}; }

  std::uint64_t address(const WordRange& stretch) const {
    const std::uint64_t base = stretch.on_host ? reinterpret_cast<std::uint64_t>(pinned_) : arena_;
    return base + stretch.word * kWord;
  }

  void upload() {
    std::vector<Work> works;
    std::vector<Span> spans;
    spans.reserve(program_.stretches.size());
    for (const WordRange& stretch : program_.stretches)
      spans.push_back({address(stretch), stretch.count, stretch.covered, 0});
    for (const DeviceStep& step : program_.steps) {
      const Expected& expected = *program_.expected[step.iteration];
      const bool fill = step.kind == TaskKind::kFill;
      for (std::uint32_t i = 0; i < step.reads + step.writes; ++i) {
        const WordRange& range = program_.stretches[step.first + i];
        spans[step.first + i].number =
            i < step.reads || fill ? expected.content[range.version.index()] : range.recorded.value();
      }
      const Nanos duration = step.kind == TaskKind::kRun ? trace_.op(step.op).duration : Nanos{};
      works.push_back({step.first, step.reads, step.writes, fill, step.seed,
                       static_cast<std::uint64_t>(std::max(duration, Nanos{}).count())});
    }
    send(device_works_, works);
    send(device_spans_, spans);
    send(device_found_, found_);
    send(device_stamps_, stamps_);
  }

  template <class T>
  void send(const Owned<Address>& to, const std::vector<T>& values) {
    if (!values.empty())
      driver_(driver_.copy_in_now, to.get(), static_cast<const void*>(values.data()), values.size() * sizeof(T));
  }
  template <class T>
  void download(std::vector<T>& values, const Owned<Address>& from) {
    if (!values.empty())
      driver_(driver_.copy_out_now, static_cast<void*>(values.data()), from.get(), values.size() * sizeof(T));
  }

  unsigned blocks_for(std::size_t first, std::size_t count) const {
    std::size_t most = 1;
    for (std::size_t i = first; i < first + count; ++i) most = std::max(most, program_.stretches[i].covered);
    const std::size_t wanted = (most + kThreads * 4 - 1) / (kThreads * 4);
    return static_cast<unsigned>(std::min<std::size_t>(wanted, gpu_.processors() * 2));
  }

  std::uint32_t start_stamp() const { return static_cast<std::uint32_t>(program_.steps.size()); }

  /// Records a point in time by an event and by a kernel's stamp, so that both clocks can be compared.
  void stamp_begin() {
    driver_(driver_.event_record, begin_.get(), streams_[0].get());
    if (options_.timed) spins_->stamp(streams_[0].get(), start_stamp());
  }

  /// Submits all commands. They begin after an event on the first stream, and end before another one.
  bool submit_all() {
    const Stream first = streams_[0].get();
    driver_(driver_.event_record, ends_[0].get(), first);
    for (std::size_t i = 1; i < streams_.size(); ++i)
      driver_(driver_.stream_wait, streams_[i].get(), ends_[0].get(), 0U);
    for (const DeviceCommand& command : program_.commands) {
      submit(command);
      ++given_;
      if (!options_.graph && !throttle(command.stream)) return false;
    }
    for (std::size_t i = 1; i < streams_.size(); ++i) {
      driver_(driver_.event_record, ends_[i].get(), streams_[i].get());
      driver_(driver_.stream_wait, first, ends_[i].get(), 0U);
    }
    if (options_.timed) spins_->join(first);
    return true;
  }

  bool throttle(std::uint32_t lane) {
    if (++submitted_[lane] % kMostUnseen != 0) return true;
    const std::size_t turn = submitted_[lane] / kMostUnseen;
    const Event event = seen_[std::size_t{lane} * 2 + turn % 2].get();
    if (turn > 2 && !wait_for(gpu_, event, patience_)) return false;
    driver_(driver_.event_record, event, streams_[lane].get());
    return true;
  }

  void submit(const DeviceCommand& command) {
    const Stream stream = streams_[command.stream].get();
    switch (command.kind) {
      case DeviceCommandKind::kWait:
        return driver_(driver_.stream_wait, stream, events_[command.number].get(), 0U);
      case DeviceCommandKind::kRecord:
        return driver_(driver_.event_record, events_[command.number].get(), stream);
      case DeviceCommandKind::kStep:
        return submit(command.number, stream);
    }
  }

  void submit(std::uint32_t number, Stream stream) {
    const DeviceStep& step = program_.steps[number];
    const Address works = device_works_.get(), spans = device_spans_.get(), found = device_found_.get(),
                  stamps = device_stamps_.get();
    const auto read = [&] {
      launch(gpu_, read_, blocks_for(step.first, step.reads), kThreads, stream, works, spans, found, stamps, number);
      if (step.reads > 0) launch(gpu_, note_, 1, 32, stream, works, spans, found, number);
    };
    const auto write = [&] {
      launch(gpu_, write_, blocks_for(step.first + step.reads, step.writes), kThreads, stream, works, spans, found,
             stamps, number);
    };
    switch (step.kind) {
      case TaskKind::kRun:
        if (options_.timed)
          return spins_->spin_op(stream, number,
                                 static_cast<std::uint64_t>(std::max(trace_.op(step.op).duration, Nanos{}).count()));
        read();
        return write();
      case TaskKind::kFill:
        return write();
      case TaskKind::kCheck:
        return read();
      case TaskKind::kClear:
        return launch(gpu_, clear_, blocks_for(step.first, 1), kThreads, stream, spans, step.first);
      case TaskKind::kCopy:
      case TaskKind::kSwapOut:
      case TaskKind::kSwapIn:
        copy(step, stream);
        if (options_.timed) spins_->after_copy(stream, step, number);
        return;
    }
  }

  void copy(const DeviceStep& step, Stream stream) {
    const WordRange &from = program_.stretches[step.first], &to = program_.stretches[step.first + 1];
    const std::uint64_t source = address(from), target = address(to);
    const std::size_t size = from.count * kWord;
    if (from.covered > from.count && !options_.timed)
      launch(gpu_, fold_, blocks_for(step.first, 1), kThreads, stream, device_spans_.get(), step.first);
    record_copy(stream);
    if (size == 0) {
    } else if (from.on_host) {
      driver_(driver_.copy_in, Address{target}, reinterpret_cast<const void*>(source), size, stream);
    } else if (to.on_host) {
      driver_(driver_.copy_out, reinterpret_cast<void*>(target), Address{source}, size, stream);
    } else {
      driver_(driver_.copy_within, Address{target}, Address{source}, size, stream);
    }
    record_copy(stream);
    if (to.covered > to.count && !options_.timed)
      launch(gpu_, repeat_, blocks_for(step.first + 1, 1), kThreads, stream, device_spans_.get(), step.first + 1);
  }

  void record_copy(Stream stream) {
    if (!options_.timed) return;
    driver_(driver_.event_record_with, copy_events_[next_copy_event_++].get(), stream,
            options_.graph ? kEventRecordExternal : 0U);
  }

  void collect_content(ExecutionReport& result) const {
    for (std::uint32_t lane = 0; lane < program_.lanes.count(); ++lane)
      result.lanes.push_back({program_.lanes.name(trace_, lane)});
    for (const DeviceStep& step : program_.steps) {
      LaneReport& lane = result.lanes[step.lane];
      ++lane.tasks;
      const bool moves = step.kind == TaskKind::kRun || is_copy(step.kind) || step.kind == TaskKind::kCheck;
      const std::uint32_t counted = is_copy(step.kind) ? 1 : step.reads + step.writes;
      for (std::uint32_t i = 0; i < counted; ++i) {
        const WordRange& stretch = program_.stretches[step.first + i];
        const Bytes size = trace_.size(stretch.version);
        if (moves) lane.bytes += size;
        if (options_.timed || !compares(step.kind) || i >= step.reads) continue;
        result.read += size;
        const Found& found = found_[step.first + i];
        if (found.wrong == 0) continue;
        const Int128 wrong = static_cast<Int128>(program_.unit.count()) * static_cast<std::int64_t>(found.wrong);
        result.corrupt += Bytes{static_cast<std::int64_t>(std::min<Int128>(wrong, size.count()))};
        if (result.first && step.action >= result.first->action) continue;
        result.first = corruption(step, stretch, found);
      }
    }
    if (!result.first) return;
    result.outcome = ExecutionOutcome::kCorrupt;
    result.message = describe(plan_, *result.first);
  }

  Corruption corruption(const DeviceStep& step, const WordRange& stretch, const Found& found) const {
    const Expected& expected = *program_.expected[step.iteration];
    const std::size_t word = static_cast<std::size_t>(found.first) % stretch.count;
    Corruption made{step.action,
                    step.op,
                    trace_.version(stretch.version).buffer,
                    stretch.version,
                    program_.unit * static_cast<std::int64_t>(word),
                    word_of(expected.content[stretch.version.index()], word),
                    found.value,
                    {}};
    made.found_is = identify(trace_, made, expected, program_.unit);
    return made;
  }

  void collect_times(ExecutionReport& result) const {
    const std::uint64_t base = stamps_.back().begin;
    std::size_t event = 0;
    for (const DeviceCommand& command : program_.commands) {
      if (command.kind != DeviceCommandKind::kStep) continue;
      const DeviceStep& step = program_.steps[command.number];
      TaskTime time{step.action, step.kind, step.lane, step.op, {}, {}, {}};
      if (is_copy(step.kind)) {
        time.version = program_.stretches[step.first].version;
        const Event from = copy_events_[event++].get(), to = copy_events_[event++].get();
        time.begin = elapsed(gpu_, begin_.get(), from);
        time.end = time.begin + elapsed(gpu_, from, to);  // a float of milliseconds since the begin is too coarse
      } else {
        time.begin = Nanos{static_cast<std::int64_t>(stamps_[command.number].begin - base)};
        time.end = Nanos{static_cast<std::int64_t>(stamps_[command.number].end - base)};
      }
      result.lanes[step.lane].busy += time.end - time.begin;
      result.times.push_back(time);
    }
    std::stable_sort(result.times.begin(), result.times.end(),
                     [](const TaskTime& a, const TaskTime& b) { return a.lane < b.lane; });
  }

  const Gpu& gpu_;
  const Driver& driver_;
  const Trace& trace_;
  const Plan& plan_;
  const DeviceProgram& program_;
  const RunOptions options_;
  const Nanos patience_ = patience();  ///< time limit of the whole run
  RunMemory own_;
  const Address arena_;
  void* const pinned_;
  std::vector<Found> found_;
  std::vector<Stamp> stamps_;  ///< by step, and one for the begin of the run
  const Owned<Address> device_works_, device_spans_, device_found_, device_stamps_;
  const Function read_ = gpu_.kernel("tidepool_read"), note_ = gpu_.kernel("tidepool_note"),
                 write_ = gpu_.kernel("tidepool_write"), clear_ = gpu_.kernel("tidepool_clear"),
                 fold_ = gpu_.kernel("tidepool_fold"), repeat_ = gpu_.kernel("tidepool_repeat");
  std::vector<Owned<Stream>> streams_;  ///< by lane
  std::vector<Owned<Event>> events_, copy_events_;
  std::vector<Owned<Event>> ends_;  ///< by stream
  std::vector<Owned<Event>> seen_;  ///< two for each stream, see throttle()
  const Owned<Event> begin_ = make_event(gpu_, true), end_ = make_event(gpu_, true);
  std::optional<Owned<GraphExec>> graph_;
  std::vector<std::size_t> submitted_;  ///< by stream
  std::optional<Spins> spins_;          ///< in a timed run
  std::size_t given_ = 0, next_copy_event_ = 0;
  bool busy_ = false;
};

}  // namespace

ExecutionReport run_program(const Gpu& gpu, const Trace& trace, const Plan& plan, const DeviceProgram& program,
                            const RunOptions& options) {
  require_sound(program);
  ExecutionReport result;
  result.peak = program.peak;
  result.unit = program.unit;
  const auto start = std::chrono::steady_clock::now();
  std::optional<Run> run;
  try {
    run.emplace(gpu, trace, plan, program, options);
    if (run->execute()) {
      run->collect(result);
    } else {
      result.outcome = ExecutionOutcome::kStuck;
      result.message = run->describe_stuck();
      gpu.abandon();
    }
  } catch (const Error& error) {
    const bool no_memory = error.status() == kErrorOutOfMemory;
    result.outcome = no_memory ? ExecutionOutcome::kOutOfMemory : ExecutionOutcome::kDeviceError;
    result.message =
        run ? fmt::format("after {} of {} commands were given: {}", run->given(), program.commands.size(), error.what())
            : error.what();
    if (run && (run->busy() || !no_memory)) gpu.abandon();
  }
  result.wall =
      Nanos{std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - start).count()};
  return result;
}

}  // namespace tidepool::cuda
