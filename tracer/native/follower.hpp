#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/grad_mode.h>

#include <cstdint>
#include <limits>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tracer/native/actions.hpp"
#include "tracer/native/call.hpp"
#include "tracer/native/cells.hpp"
#include "tracer/native/operators.hpp"
#include "tracer/native/proceed.hpp"
#include "tracer/native/recipe.hpp"
#include "tracer/native/step.hpp"
#include "tracer/native/storages.hpp"

namespace tidepool::native {

/// What Python is asked to do, with words as tidepool_live/native_follower.py reads them. `call` stands for: number
/// of the operator, whether it allocates, whether it updates running statistics, number of tensors, and for each of
/// them its storage, access, bytes, and whether it is a running statistic.
enum Ask : int {
  kPrepare = 1,  ///< call: make everything ready for it
  kIssue,        ///< op, call: execute the actions up to the op, which the call is
  kRoom,         ///< bytes, call: they must be within the limit
  kBring,        ///< op, call: content of its arguments is elsewhere
  kRan,       ///< name, whether it brings content from outside, then (storage, access): compare this op with the step
  kBecome,    ///< (version, version) of managed versions that an op has changed in place
  kEnded,     ///< storages have ended that Python knows: take_told()
  kLastRan,   ///< the last op of the step has run
  kFinish,    ///< the next op comes
  kExceeded,  ///< more bytes are in use than the job may use
  kFailed,    ///< nothing more can be compared; tidepool_error() says why
};

/// Compares each op of a job with the next one of a recorded step, and asks Python where more than that is due.
class Follower {
 public:
  using Asked = int (*)(int what, const std::int64_t* words, std::int64_t count);
  using Words = c10::SmallVector<std::int64_t, 64>;

  Follower(std::mutex& mutex, Storages& storages, Operators& operators)
      : actions{step, storages, recipes}, mutex_{mutex}, storages_{storages}, operators_{operators} {}

  Step step;
  std::vector<std::unique_ptr<Recipe>> recipes;  // by op
  Actions actions;
  std::string error;

  void begin(Asked asked, bool on_gpu, bool exact) {
    asked_ = asked;
    on_gpu_ = on_gpu;
    exact_ = exact;
    empty_ = operators_.name("aten::empty");
    recipes.clear();
    recipes.resize(step.ops.size());
    told_.clear();
    error.clear();
  }

  void follow(const c10::OperatorHandle& op, c10::DispatchKeySet keys, Stack* stack) {
    std::unique_lock lock{mutex_};
    const Operator& facts = operators_.look_up(op);
    const bool within = cell(kWhole) != 0 && expected() > 0;
    if (!facts.records || (facts.views && (within || !views_moved(facts, *stack)))) {
      lock.unlock();
      return proceed(op, keys, stack);
    }
    std::vector<Storages::Weak> dead;
    Call call{facts, storages_, on_gpu_, empty_};
    Current current{op, keys, *stack, call, nullptr};
    bool seen = false;
    safely(lock, [&] {
      seen = before(lock, current);
      dead = storages_.take_dead();
    });
    lock.unlock();
    dead.clear();
    proceed(op, keys, stack);
    if (!seen) return;
    lock.lock();
    safely(lock, [&] {
      See see{*this, lock, current};
      call.end(*stack, see);
      if (cell(kNow) > cell(kBudget)) ask(lock, kExceeded, {});
    });
    lock.unlock();
  }

  /// A storage ends, or its buffer does. The caller has the lock.
  void ended(Tracked& tracked) {
    add(kNow, -tracked.counted);
    tracked.counted = 0;
    if (tracked.slot < 0) {
      if (cell(kWhole) != 0 && cell(kUpdating) == 0) step.ended_idle(tracked, expected());
    } else {
      step.homes[tracked.slot] = 0;
    }
    const std::int64_t version = tracked.slot < 0 ? -1 : step.versions[tracked.slot];
    if (tracked.told || (version >= 0 && step.states[version] != kUnmanaged))
      told_.insert(told_.end(), {tracked.number, std::int64_t{tracked.slot}, version});
    tracked.slot = tracked.before = tracked.remembered = -1;
    tracked.away = false;
  }

  /// Counts the bytes of a storage, of which some may have left.
  void count(Tracked& tracked, std::int64_t bytes) {
    add(kNow, bytes - tracked.counted);
    tracked.counted = bytes;
  }

  void add(std::size_t where, std::int64_t bytes) {
    cell(where) += bytes;
    cell(kPeak) = std::max(cell(kPeak), cell(kNow));
  }

  /// (storage, buffer, version) of the storages that Python knows and that have ended since the last call.
  std::vector<std::int64_t> take_told() { return std::exchange(told_, {}); }

  /// Keeps the current call for op `index`. Returns whether it could.
  bool keep(std::int64_t index) {
    if (!current_ || !current_->recipe) return false;
    recipes[static_cast<std::size_t>(index)] = std::move(current_->recipe);
    return true;
  }

  /// Bytes that the current call will make.
  std::int64_t made() const { return current_ ? made_bytes(current_->op, current_->call.op(), current_->stack) : 0; }

  std::int64_t expected() const {
    const std::int64_t matched = cell(kMatched);
    return matched < static_cast<std::int64_t>(step.ops.size()) ? matched : 0;
  }

 private:
  // Python is told earlier, whenever it is asked for anything else.
  static constexpr std::size_t kMostTold = 3 * 256;

  /// The call that is being looked at.
  struct Current {
    const c10::OperatorHandle& op;
    c10::DispatchKeySet keys;
    const Stack& stack;
    Call& call;
    std::unique_ptr<Recipe> recipe;
  };

  using Lock = std::unique_lock<std::mutex>;

  struct See {
    Follower& follower;
    Lock& lock;
    Current& current;

    void made(Tracked& tracked) { follower.count(tracked, tracked.bytes); }
    void resized(Tracked& tracked, std::int64_t bytes) {
      follower.ended(tracked);
      tracked.bytes = bytes;
      follower.count(tracked, bytes);
    }
    void run(const StepOp& op) { follower.ran(lock, op, current); }
  };

  static std::int64_t& cell(std::size_t which) { return tidepool_cells[which]; }

  /// An error of the job: content that it needs is gone, or it uses too much memory.
  struct JobError {
    bool memory;
  };

  void ask(Lock& lock, Ask what, const Words& words) {
    lock.unlock();
    const int answer = asked_(what, words.data(), static_cast<std::int64_t>(words.size()));
    lock.lock();
    if (answer != 0) throw JobError{answer == 1};
  }

  /// Calls f. An error of the follower ends its work and not the job.
  template <class F>
  void safely(Lock& lock, F&& f) {
    bool memory = false;
    try {
      try {
        return f();
      } catch (const std::exception& failure) {
        error = failure.what();
        return ask(lock, kFailed, {});
      }
    } catch (const JobError& failure) {
      memory = failure.memory;
    }
    lock.unlock();
    if (memory) TORCH_CHECK_WITH(OutOfMemoryError, false, error);
    throw std::runtime_error(error);
  }

  Words words_of(const Call& call, std::int64_t first) const {
    Words words{first, call.op().number, call.allocates(), call.updates_statistics(),
                static_cast<std::int64_t>(call.given.size())};
    for (const Given& each : call.given)
      words.append({each.tracked->number, static_cast<std::int64_t>(each.access), each.bytes, each.statistic});
    return words;
  }

  void ask_for(Lock& lock, Ask what, std::int64_t first, Current& current) {
    current_ = &current;
    ask(lock, what, words_of(current.call, first));
    current_ = nullptr;
  }

  bool may_be(std::int64_t index) const {
    const std::int8_t mode = step.modes[static_cast<std::size_t>(index)];
    return mode == 2 || (mode != 0) == at::GradMode::is_enabled();
  }

  /// The step's op that a call of this name may be, or -1. Skips the creation of empty storages, which takes no time.
  std::int64_t next_named(std::int64_t name) const {
    std::int64_t index = expected();
    if (cell(kGaveUp) != 0 || (index != 0 && cell(kWhole) == 0)) return -1;
    const auto count = static_cast<std::int64_t>(step.ops.size());
    while (index + 1 < count && step.ops[index].name == empty_ && name != empty_) ++index;
    return step.ops[index].name == name && may_be(index) ? index : -1;
  }

  /// Whether actions are due before op `index`.
  bool due(std::int64_t index) const {
    for (std::int64_t i = cell(kIssued); i <= index; ++i)
      if (step.ops[static_cast<std::size_t>(i)].acts) return true;
    return cell(kTake) != 0;
  }

  /// Whether a view is made of content that is elsewhere: code may read it without an op. Within a step, only ops do.
  bool views_moved(const Operator& facts, const Stack& stack) const {
    for (std::size_t i = stack.size() - facts.arguments; i < stack.size(); ++i) {
      if (!stack[i].isTensor() || !stack[i].toTensor().defined()) continue;
      const c10::TensorImpl* const impl = stack[i].toTensor().unsafeGetTensorImpl();
      if (!impl->has_storage() || impl->layout() != c10::kStrided) continue;
      const Tracked* const tracked = storages_.known(impl->unsafe_storage().unsafeGetStorageImpl());
      if (tracked && is_moved(*tracked)) return true;
    }
    return false;
  }

  bool is_moved(const Tracked& tracked) const {
    if (tracked.away) return true;
    const std::int64_t version = tracked.slot < 0 ? -1 : step.versions[tracked.slot];
    return version >= 0 && step.states[version] == kMoved && !actions.is_there(tracked, version);
  }

  bool lacks_content(const Call& call) const {
    if (call.op().shape_only) return false;
    for (const Given& each : call.given)
      if (is_moved(*each.tracked)) return true;
    return false;
  }

  /// Makes everything ready for a call. Returns whether it is to be looked at when it has returned.
  bool before(Lock& lock, Current& current) {
    const auto end = [this](Tracked& tracked) { ended(tracked); };
    storages_.look_around(end);
    Call& call = current.call;
    call.begin(++calls_, current.stack);
    for (Tracked* each : call.found) count(*each, each->bytes);
    if (told_.size() > kMostTold) ask(lock, kEnded, {});
    if (cell(kEnds) != 0 && !call.op().views) ask(lock, kFinish, {});
    if (cell(kResting) > 0 || call.op().views) {
      if (lacks_content(call)) ask_for(lock, kPrepare, 0, current);
      return false;
    }
    const std::int64_t name = call.op().name, index = next_named(name);
    if (call.on_host() && index < 0) return true;
    const bool quick = cell(kWhole) != 0 && cell(kBusy) == 0;
    if (quick && call.op().lifts && cell(kNow) + step.largest <= step.limit) return true;
    if (!exact_ && cell(kNow) + step.largest > step.limit)
      storages_.look_around(end, std::numeric_limits<std::size_t>::max());
    if (quick && index > 0 && step.begins_with(index, call.uses.data(), call.uses.size())) {
      prepare_expected(lock, current, index);
    } else if (quick && call.op().uninitialised && index < 0 && cell(kNow) + step.largest <= step.limit) {
      if (call.allocates() && may_be(expected())) issue(lock, current, expected());
    } else {
      ask_for(lock, kPrepare, 0, current);
      keep_call(current, next_named(name));
    }
    require_content(call);
    return true;
  }

  /// Every argument has an address now: without one, a kernel would end the process.
  void require_content(const Call& call) {
    if (call.op().shape_only) return;
    for (const Given& each : call.given) {
      if (each.storage->nbytes() == 0 || each.tracked->kind != Kind::kDevice || resident_bytes(*each.storage) > 0)
        continue;
      error = "tidepool_live: an argument of " + operators_.text(call.op().name) +
              " has no content; please report the plan and the trace";
      throw JobError{false};
    }
  }

  /// Executes the actions up to op `index`, those of Python too.
  void issue(Lock& lock, Current& current, std::int64_t index) {
    if (due(index) && !act(lock, index)) ask_for(lock, kIssue, index, current);
    cell(kIssued) = std::max(cell(kIssued), index + 1);
  }

  /// Executes these actions up to the first one that is Python's. Returns whether there was none.
  bool act(Lock& lock, std::int64_t index) {
    if (cell(kTake) != 0) return false;
    bool done = true;
    for (; done && cell(kIssued) <= index; cell(kIssued) += done) {
      const auto& these = actions.before[static_cast<std::size_t>(cell(kIssued))];
      std::int64_t& next = cell(kDone);
      while (done && next < static_cast<std::int64_t>(these.size())) {
        done = actions.act(lock, these[static_cast<std::size_t>(next)]);
        next += done;
      }
      if (done) next = 0;
    }
    drop_released(lock);
    return done;
  }

  void drop_released(Lock& lock) {
    auto released = actions.take_released();
    if (released.empty()) return;
    lock.unlock();
    released.clear();
    lock.lock();
  }

  /// Copies of the arguments are awaited on the device.
  void await_copies(Lock& lock, const Call& call) {
    for (const Given& each : call.given) {
      if (each.tracked->slot < 0 || each.tracked->away) continue;
      const std::int64_t version = step.versions[each.tracked->slot];
      if (step.states[version] == kMoved)
        actions.ready(*each.tracked, version, each.access == Access::kWrite || each.access == Access::kReadWrite);
    }
    drop_released(lock);
  }

  void prepare_expected(Lock& lock, Current& current, std::int64_t index) {
    issue(lock, current, index);
    await_copies(lock, current.call);
    std::int64_t bytes = 0;
    for (std::int64_t i = expected(); i <= index; ++i) bytes += step.ops[static_cast<std::size_t>(i)].made;
    if (cell(kNow) + bytes > step.limit) ask_for(lock, kRoom, bytes, current);
    if (lacks_content(current.call)) ask_for(lock, kBring, index, current);
    keep_call(current, index);
  }

  void keep_call(Current& current, std::int64_t index) {
    const bool begins = step.ops[0].recipe && step.ops[0].name == current.call.op().name;
    if (begins || (index >= 0 && step.ops[static_cast<std::size_t>(index)].recipe))
      current.recipe = std::make_unique<Recipe>(current.op, current.keys, current.call, current.stack);
  }

  /// An op of the job has run.
  void ran(Lock& lock, const StepOp& op, Current& current) {
    const std::int64_t index = expected();
    if (!continues(op, index, current)) {
      Words words{op.name, op.work == Work::kSource};
      for (const BufferUse& use : op.uses) words.append({use.tracked->number, static_cast<std::int64_t>(use.access)});
      current_ = &current;
      ask(lock, kRan, words);
      current_ = nullptr;
      return;
    }
    cell(kMatched) = index + 1;
    ++cell(kQuick);
    step.new_modes[static_cast<std::size_t>(index)] = at::GradMode::is_enabled();
    issue(lock, current, index);  // the step may have several ops for a call; only the first was known before it ran
    const PlannedOp& planned = step.ops[static_cast<std::size_t>(index)];
    for (std::size_t i = 0; i < planned.uses.size(); ++i) bind(*op.uses[i].tracked, planned.uses[i]);
    if (planned.recipe) recipes[static_cast<std::size_t>(index)] = std::move(current.recipe);
    Words changes;
    for (const PlannedUse& use : planned.uses) {
      if (use.after < 0) continue;
      std::int64_t& version = step.versions[use.buffer];
      if (version >= 0 && step.states[version] != kUnmanaged && !actions.become(version, use.after))
        changes.append({version, use.after});
      version = use.after;
    }
    if (!changes.empty()) ask(lock, kBecome, changes);
    if (index + 1 == static_cast<std::int64_t>(step.ops.size())) ask(lock, kLastRan, {});
  }

  /// Whether an op is the one that continues the step, and nothing but its bindings is due.
  bool continues(const StepOp& op, std::int64_t index, const Current& current) const {
    if (index == 0) return false;
    if (cell(kWhole) == 0 || cell(kBusy) != 0 || cell(kGaveUp) != 0 || !may_be(index)) return false;
    const PlannedOp& planned = step.ops[static_cast<std::size_t>(index)];
    if (planned.name != op.name || planned.uses.size() != op.uses.size()) return false;
    if (planned.recipe && (op.work == Work::kSource || !current.recipe || op.name != current.call.op().name))
      return false;
    if (!step.begins_with(index, op.uses.data(), op.uses.size())) return false;
    for (std::size_t i = 0; i < op.uses.size(); ++i) {  // another storage that the plan has moved is this buffer
      const std::int64_t buffer = planned.uses[i].buffer;
      if (op.uses[i].tracked->slot != buffer && step.homes[buffer] != 0 &&
          step.states[step.versions[buffer]] != kUnmanaged)
        return false;
    }
    return true;
  }

  void bind(Tracked& tracked, const PlannedUse& use) {
    if (tracked.slot == use.buffer) return;
    step.bind(storages_, tracked, use.buffer, use.before >= 0 ? use.before : step.first_version[use.buffer]);
    step.used(tracked, use.buffer);
  }

  std::mutex& mutex_;
  Storages& storages_;
  Operators& operators_;
  Asked asked_ = nullptr;
  bool on_gpu_ = false, exact_ = false;
  std::int64_t empty_ = 0, calls_ = 0;
  std::vector<std::int64_t> told_;
  Current* current_ = nullptr;
};

}  // namespace tidepool::native
