#include "validator/execution/device_program.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "simulator/engine/pools/hole_map.hpp"
#include "traces/base/error.hpp"
#include "validator/execution/places.hpp"
#include "validator/execution/scale.hpp"
#include "validator/execution/words.hpp"

namespace tidepool {
namespace {

constexpr Bytes kEndless{std::int64_t{1} << 62};

/// Memory that is allocated and freed in issue order, with the last users of each part.
class Packed {
 public:
  struct Part {
    Bytes first, size;
    std::uint32_t place = 0;  ///< number of its place in touched()
  };

  explicit Packed(std::size_t lanes) : holes_{kEndless}, touched_{lanes} {}

  Part take(std::size_t words) {
    const Bytes size{static_cast<std::int64_t>(words) * kWordBytes};
    if (size == Bytes{}) return {};
    const std::optional<Bytes> first = holes_.place_best(size);
    if (!first) throw InputError{"copies to the host, and places without addresses, need more than 2^62 bytes"};
    end_ = std::max(end_, *first + size);
    return {*first, size, touched_.open(*first, size)};
  }
  void give_back(const Part& part) {
    if (part.size == Bytes{}) return;
    touched_.close(part.place);
    holes_.release({part.first, part.size});
  }
  Places& touched() { return touched_; }
  std::size_t words() const { return static_cast<std::size_t>(end_.count() / kWordBytes); }

 private:
  HoleMap holes_;
  Places touched_;
  Bytes end_;
};

class Builder final : public Backend {
 public:
  Builder(const PlannedStep& step, const Plan& plan, const DeviceProgramOptions& options)
      : trace_{step.trace()},
        reference_{step},
        content_{options.content},
        scale_{trace_, plan, options.aim, options.least_unit},
        launches_{reference_.recorded()},
        program_{.lanes = {static_cast<std::uint32_t>(trace_.data().streams.size())},
                 .expected = {std::make_shared<Expected>(reference_.first())},
                 .unit = scale_.unit()},
        host_{program_.lanes.count()},
        unaddressed_{program_.lanes.count()},
        waited_(program_.lanes.count(), LaneNumbers(program_.lanes.count())),
        need_(program_.lanes.count()) {}

  void open(std::uint32_t place, Bytes offset, Bytes size, bool on_host) override {
    if (place >= memory_.size()) memory_.resize(place + 1);
    Memory& memory = memory_[place];
    memory = {.offset = offset, .on_host = on_host};
    if (offset == kNoAddress) {
      memory.own = packed(memory).take(scale_.words(size));
      memory.held = scale_.words(size);
    } else {
      memory.held = scale_.word(offset + size) - scale_.word(offset);
    }
  }

  void close(std::uint32_t place) override {
    if (memory_[place].offset == kNoAddress) packed(memory_[place]).give_back(memory_[place].own);
  }

  void submit(const Task& task) override {
    const std::size_t first_wait = waits_.size();
    for (const Wait wait : task.waits) add_wait(task.lane, wait);
    need_of_packed(task);
    for (std::uint32_t lane = 0; lane < need_.size(); ++lane) {
      if (lane != task.lane && need_[lane] > waited_[task.lane][lane]) add_wait(task.lane, {lane, need_[lane]});
      need_[lane] = 0;
    }
    touch_packed(task);
    const bool takes_time = task.kind == TaskKind::kRun || task.kind == TaskKind::kCopy ||
                            task.kind == TaskKind::kSwapOut || task.kind == TaskKind::kSwapIn;
    tasks_.push_back({{task.lane, task.number}, first_wait, waits_.size(), content_ || takes_time});
    if (content_ || takes_time) add_step(task);
  }

  void next_iteration() override {
    program_.expected.push_back(std::make_shared<Expected>(reference_.next(*program_.expected.back())));
    launches_.next_iteration();
  }

  DeviceProgram finish(Bytes peak) {
    program_.peak = peak;
    const std::size_t arena = scale_.arena_words();
    for (WordRange& stretch : program_.stretches)
      if (stretch.word >= kUnaddressed) stretch.word += arena - kUnaddressed;
    program_.device_words = arena + unaddressed_.words();
    program_.host_words = host_.words();
    write_commands();
    return std::move(program_);
  }

 private:
  struct Memory {
    Bytes offset;
    bool on_host = false;
    std::size_t held = 0;  ///< words
    Packed::Part own = {};
  };
  struct Submitted {
    Wait self;
    std::size_t first_wait = 0, last_wait = 0;  ///< indices in waits_
    bool has_step = false;
  };
  /// Offset of words without addresses, until the end of the addressed words is known.
  static constexpr std::size_t kUnaddressed = std::size_t{1} << 62;

  Packed& packed(const Memory& memory) { return memory.on_host ? host_ : unaddressed_; }

  void add_wait(std::uint32_t lane, Wait wait) {
    waits_.push_back(wait);
    waited_[lane][wait.lane] = std::max(waited_[lane][wait.lane], wait.number);
  }

  template <class Visit>
  void for_packed(std::span<const Operand> operands, Visit visit) {
    for (const Operand& operand : operands) {
      if (trace_.size(operand.version) == Bytes{}) continue;
      const Memory& memory = memory_[operand.place];
      if (memory.offset == kNoAddress) visit(packed(memory).touched(), memory.own.place);
    }
  }
  /// Adds the tasks that must end before the task writes memory that belonged to another place.
  void need_of_packed(const Task& task) {
    for_packed(task.writes, [&](Places& touched, std::uint32_t place) { touched.before_writing(place, need_); });
  }
  void touch_packed(const Task& task) {
    const Wait self{task.lane, task.number};
    for_packed(task.reads, [&](Places& touched, std::uint32_t place) { touched.was_read(place, self); });
    for_packed(task.writes, [&](Places& touched, std::uint32_t place) { touched.was_written(place, self); });
  }

  void add_step(const Task& task) {
    DeviceStep step{.kind = task.kind, .lane = task.lane, .action = task.action, .op = task.op};
    step.seed = task.kind == TaskKind::kRun ? launches_.seed(reference_.op(task.op)) : 0;
    step.iteration = static_cast<std::uint32_t>(program_.expected.size() - 1);
    step.first = static_cast<std::uint32_t>(program_.stretches.size());
    step.reads = static_cast<std::uint32_t>(task.reads.size());
    step.writes = static_cast<std::uint32_t>(task.writes.size());
    for (const auto operands : {task.reads, task.writes})
      for (const Operand& operand : operands)
        program_.stretches.push_back(stretch(operand, task.kind == TaskKind::kClear));
    program_.steps.push_back(step);
  }

  /// @param whole  all words of the place, not only those of the content
  WordRange stretch(const Operand& operand, bool whole) const {
    const Bytes size = trace_.size(operand.version);
    const VersionId recorded = reference_.version(operand.version);
    if (size == Bytes{}) return {.version = operand.version, .recorded = recorded};
    const Memory& memory = memory_[operand.place];
    WordRange made{
        .on_host = memory.on_host, .count = scale_.words(size), .version = operand.version, .recorded = recorded};
    if (memory.offset == kNoAddress) {
      made.word = static_cast<std::size_t>(memory.own.first.count() / kWordBytes) + (memory.on_host ? 0 : kUnaddressed);
      made.covered = made.count;
    } else {
      made.word = scale_.word(memory.offset);
      made.covered = scale_.word(memory.offset + size) - made.word;
    }
    if (whole) made.count = made.covered = memory.held;
    return made;
  }

  /// A task is followed by a record of an event if another task waits for it. An event is used again after the last
  /// wait for it, since a wait refers to the latest record issued before it.
  void write_commands() {
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::size_t> last_waiter;
    for (std::size_t i = 0; i < tasks_.size(); ++i)
      for (std::size_t w = tasks_[i].first_wait; w < tasks_[i].last_wait; ++w)
        last_waiter[{waits_[w].lane, waits_[w].number}] = i;
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> event_of;
    std::vector<std::uint32_t> unused;
    std::uint32_t steps = 0;
    for (std::size_t i = 0; i < tasks_.size(); ++i) {
      const Submitted& task = tasks_[i];
      for (std::size_t w = task.first_wait; w < task.last_wait; ++w) {
        const auto awaited = event_of.find({waits_[w].lane, waits_[w].number});
        program_.commands.push_back({DeviceCommandKind::kWait, task.self.lane, awaited->second});
        if (last_waiter[awaited->first] != i) continue;
        unused.push_back(awaited->second);
        event_of.erase(awaited);
      }
      if (task.has_step) program_.commands.push_back({DeviceCommandKind::kStep, task.self.lane, steps++});
      if (!last_waiter.contains({task.self.lane, task.self.number})) continue;
      if (unused.empty()) unused.push_back(program_.events++);
      program_.commands.push_back({DeviceCommandKind::kRecord, task.self.lane, unused.back()});
      event_of.emplace(std::pair{task.self.lane, task.self.number}, unused.back());
      unused.pop_back();
    }
  }

  const Trace& trace_;
  const Reference reference_;
  const bool content_;
  const Scale scale_;
  Launches launches_;
  DeviceProgram program_;
  Packed host_, unaddressed_;
  std::vector<Memory> memory_;  ///< by place
  std::vector<Submitted> tasks_;
  std::vector<Wait> waits_;
  std::vector<LaneNumbers> waited_;  ///< [lane][other]: the last task of `other` that `lane` has waited for
  LaneNumbers need_;
};

}  // namespace

DeviceProgram make_program(const Trace& trace, const Plan& plan, const DeviceProgramOptions& options) {
  const PlannedStep step{trace, plan};
  require_known(step.trace(), plan);
  Builder builder{step, plan, options};
  const Bytes peak = execute(step.trace(), plan, {options.copy_on_write, options.content}, builder);
  return builder.finish(peak);
}

void require_sound(const DeviceProgram& program) {
  for (std::size_t i = 0; i < program.steps.size(); ++i) {
    const DeviceStep& step = program.steps[i];
    for (std::size_t s = step.first; s < std::size_t{step.first} + step.reads + step.writes; ++s) {
      const WordRange& stretch = program.stretches.at(s);
      const std::size_t memory = stretch.on_host ? program.host_words : program.device_words;
      if (stretch.covered < stretch.count || stretch.covered > memory || stretch.word > memory - stretch.covered)
        throw PlanError{fmt::format("step {} touches words [{}, {}) of {} on the {}", i, stretch.word,
                                    stretch.word + stretch.covered, memory, stretch.on_host ? "host" : "device")};
    }
  }
  for (const DeviceCommand& command : program.commands) {
    const std::size_t known = command.kind == DeviceCommandKind::kStep ? program.steps.size() : program.events;
    if (command.stream >= program.lanes.count() || command.number >= known)
      throw PlanError{fmt::format("a command on stream {} has number {}; expected less than {} and {}", command.stream,
                                  command.number, program.lanes.count(), known)};
  }
}

}  // namespace tidepool
