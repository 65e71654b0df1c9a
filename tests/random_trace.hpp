// Seeded random training steps for tests and benchmarks: the same trace for the same arguments, on every platform.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "traces/builder.hpp"

namespace tidepool::tests {

/// A small generator whose numbers are the same everywhere (SplitMix64).
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_{seed} {}
  std::uint64_t next() {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  /// A whole number in [0, limit). `limit` > 0.
  std::size_t below(std::size_t limit) { return next() % limit; }
  bool chance(std::size_t percent) { return below(100) < percent; }

 private:
  std::uint64_t state_;
};

/// A step with the shape of training: the forward phase leaves about a third of its buffers, the backward phase uses
/// them from the last to the first, the optimizer phase updates buffers in place, mostly parameters. There are ops with
/// several outputs, updates and overwrites in place, views and reads through them, random ops, sources, and several
/// streams with the orders that they need. Some buffers are freed at once, never used, or read before they are written;
/// some versions are forgotten.
///
/// A small step has no phases. One op may read, update and overwrite several buffers, view one, and make several
/// outputs. Any buffer may end after any op, except parameters and optimizer states, which outlive the step.
class RandomProgram {
 public:
  RandomProgram(std::uint64_t seed, int ops) : random_{seed}, ops_{ops}, timed_{seed % 2 == 0} {}

  Trace make_small() {
    small_ = true;
    two_streams_ = random_.chance(30);
    for (std::size_t i = random_.below(4); i > 0; --i)
      add_existing(i == 1 ? BufferKind::kInput : i == 2 ? BufferKind::kOptimizerState : BufferKind::kParameter);
    for (int i = 0; i < ops_; ++i) {
      make_small_op();
      for (std::size_t b = 0; b < live_.size(); ++b) {
        if (live_[b].dead || live_[b].persistent || !random_.chance(20)) continue;
        live_[b].dead = true;
        builder_.free(live_[b].id);
      }
    }
    return builder_.finish();
  }

  Trace make() {
    builder_.meta()["source"] = "random";
    builder_.meta()["time"] = "estimated";
    const std::size_t parameters = 2 + static_cast<std::size_t>(ops_) / 20;
    for (std::size_t i = 0; i < parameters; ++i)
      add_existing(i % 3 == 2 ? BufferKind::kOptimizerState : BufferKind::kParameter);
    batch_ = live_[add_existing(BufferKind::kInput)].id;
    builder_.mark(MarkKind::kIteration, "0");
    for (int i = 0; i < ops_; ++i) {
      enter_phase(i);
      make_op();
      free_some(i);
    }
    builder_.losses().unknown_pointers = static_cast<std::int64_t>(random_.below(3));
    return builder_.finish();
  }

 private:
  struct Live {
    BufferId id;
    bool persistent = false;  ///< a parameter or optimizer state: never freed
    bool dead = false;
    std::vector<VersionId> views;  ///< of its current content
    std::optional<OpId> writer;
    std::vector<OpId> readers;  ///< since the last write
  };

  std::size_t add_existing(BufferKind kind) {
    const BufferId id = builder_.existing({.size = size(), .address = address(), .name = name("p"), .kind = kind});
    index_.push_back(live_.size());
    live_.push_back({id, kind != BufferKind::kInput, false, {}, {}, {}});
    return live_.size() - 1;
  }

  std::size_t add_alloc(StreamId stream) {
    const BufferKind kind = phase_ == Phase::kForward    ? BufferKind::kActivation
                            : phase_ == Phase::kBackward ? BufferKind::kGradient
                                                         : BufferKind::kWorkspace;
    const BufferId id = builder_.alloc({.size = size(),
                                        .address = address(),
                                        .name = name("a"),
                                        .stream = stream,
                                        .kind = kind,
                                        .line = line(live_.size())});
    index_.push_back(live_.size());
    live_.push_back({id, false, false, {}, {}, {}});
    recent_.push_back(live_.size() - 1);
    return live_.size() - 1;
  }

  Bytes size() {
    if (random_.chance(1)) return Bytes{};
    if (small_) return 512_B * static_cast<std::int64_t>(1 + random_.below(4));
    return Bytes{static_cast<std::int64_t>(1 + random_.below(16)) << (6 + random_.below(5))};
  }
  std::int64_t address() {
    if (!timed_) return -1;
    address_ += 512 * static_cast<std::int64_t>(1 + random_.below(64));
    return address_;
  }
  StringId name(const char* prefix) {
    return random_.chance(50) ? builder_.text(prefix + std::to_string(live_.size())) : StringId{};
  }

  /// A line of the user's code for some buffers and ops. Several of them have the same line.
  StringId line(std::size_t number) {
    return number % 3 == 0 ? builder_.text("model.py:" + std::to_string(number % 12)) : StringId{};
  }

  void enter_phase(int op) {
    const Phase phase = op < ops_ * 9 / 20   ? Phase::kForward
                        : op < ops_ * 9 / 10 ? Phase::kBackward
                                             : Phase::kOptimizer;
    if (phase == phase_) return;
    static constexpr const char* kNames[] = {"", "forward", "backward", "optimizer"};
    phase_ = phase;
    builder_.mark(MarkKind::kPhase, kNames[static_cast<std::size_t>(phase)]);
  }

  /// A buffer that an op uses: mostly a recent one, sometimes any live one.
  std::size_t pick() {
    if (!recent_.empty() && random_.chance(70))
      return recent_[recent_.size() - 1 - random_.below(std::min<std::size_t>(recent_.size(), 6))];
    for (int tries = 0; tries < 8; ++tries)
      if (const std::size_t i = random_.below(live_.size()); !live_[i].dead) return i;
    return 0;
  }

  using Touch = TraceBuilder::Touch;

  Touch touch(std::size_t i, Access access) {
    Live& live = live_[i];
    static constexpr Evidence kKnown[] = {Evidence::kSchema, Evidence::kConst, Evidence::kParameter,
                                          Evidence::kInferred};
    Touch made{live.id, access, kKnown[random_.below(4)], VersionId{}};
    if (access != Access::kWrite && !live.views.empty() && random_.chance(50))
      made.through = live.views[random_.below(live.views.size())];
    return made;
  }

  void make_op() {
    Op op{.name = {},
          .stream = builder_.stream(random_.chance(80)   ? "0"
                                    : random_.chance(50) ? "7"
                                                         : "13"),
          .phase = phase_};
    op.module = builder_.text("layer" + std::to_string(random_.below(12)));
    op.duration = Nanos{static_cast<std::int64_t>(1'000 + random_.below(99'000))};
    if (timed_) {
      clock_ += static_cast<std::int64_t>(random_.below(50'000));
      op.launch = Nanos{clock_};
      op.start = Nanos{clock_ + 5'000};
    }
    std::vector<Touch> touches;
    const auto read_some = [&](std::size_t most) {
      for (std::size_t n = random_.below(most + 1); n > 0; --n) touches.push_back(touch(pick(), Access::kRead));
    };
    const char* what = "kernel";
    const std::size_t roll = random_.below(100);
    if (roll < 4) {
      what = "load", op.kind = OpKind::kSource;
      touches.push_back(touch(add_alloc(op.stream), Access::kWrite));
    } else if (roll < 8) {
      what = "reshape", op.duration = Nanos{};
      touches.push_back(touch(pick(), Access::kView));
    } else if (roll < 20 || phase_ == Phase::kOptimizer) {
      what = "add_";
      const std::size_t target = phase_ == Phase::kOptimizer ? random_.below(live_.size()) : pick();
      read_some(2);
      touches.push_back(
          touch(live_[target].dead ? 0 : target, random_.chance(90) ? Access::kReadWrite : Access::kTouch));
    } else if (roll < 24) {
      what = "copy_", op.kind = OpKind::kCopy;
      touches.push_back(touch(pick(), Access::kRead));
      touches.push_back(touch(pick(), Access::kWrite));
    } else if (roll < 26) {
      what = "zero_", op.kind = OpKind::kMemset;
      touches.push_back(touch(pick(), Access::kWrite));
    } else if (roll < 28) {
      what = "synchronize", op.kind = OpKind::kHostWait, op.duration = Nanos{};
    } else {
      if (roll < 34)
        what = "dropout", op.random = true;
      else if (roll < 36)
        what = "all_reduce", op.kind = OpKind::kCollective;
      read_some(3);
      const std::size_t outputs = random_.chance(80) ? 1 : 2 + random_.below(2);
      for (std::size_t n = 0; n < outputs; ++n) {
        const Access access = random_.chance(98) ? Access::kWrite : Access::kTouch;
        touches.push_back(touch(add_alloc(op.stream), access));
      }
    }
    if (!touches.empty() && random_.chance(3)) touches.push_back(touches[0]);  // the op names the buffer twice
    op.name = builder_.text(what);
    op.line = line(streams_.size());
    run(op, touches);
  }

  std::optional<std::size_t> pick_live() {
    std::vector<std::size_t> live;
    for (std::size_t i = 0; i < live_.size(); ++i)
      if (!live_[i].dead) live.push_back(i);
    if (live.empty()) return std::nullopt;
    return live[random_.below(live.size())];
  }

  void make_small_op() {
    Op op{.name = builder_.text("op"),
          .stream = builder_.stream(two_streams_ && random_.chance(40) ? "7" : "0"),
          .duration = Nanos{static_cast<std::int64_t>(1'000 * (1 + random_.below(5)))}};
    std::vector<Touch> touches;
    const auto touch_some = [&](std::size_t most, Access access) {
      for (std::size_t n = random_.below(most + 1); n > 0; --n)
        if (const std::optional<std::size_t> live = pick_live()) touches.push_back(touch(*live, access));
    };
    const bool source = random_.chance(8);
    if (source) {
      op.kind = OpKind::kSource;
    } else {
      op.random = random_.chance(10);
      touch_some(2, Access::kRead);
      if (random_.chance(50)) touch_some(2, Access::kReadWrite);
      if (random_.chance(15)) touch_some(2, Access::kWrite);
      if (random_.chance(12)) touch_some(1, Access::kView);
    }
    const std::size_t outputs = random_.below(3) + (source ? 1 : 0);
    for (std::size_t n = 0; n < outputs; ++n) touches.push_back(touch(add_alloc(op.stream), Access::kWrite));
    run(op, touches);
  }

  void run(const Op& op, const std::vector<Touch>& touches) {
    const OpId id{streams_.size()};
    std::vector<OpId> before;
    std::vector<VersionId> replaced;
    const auto wait = [&](OpId other) {
      if (streams_[other.index()] != op.stream) before.push_back(other);
    };
    for (const Touch& touch : touches) {
      const Live& live = live_[index_[touch.buffer.index()]];
      const bool writes = touch.access != Access::kRead && touch.access != Access::kView;
      if (live.writer) wait(*live.writer);
      if (writes) std::for_each(live.readers.begin(), live.readers.end(), wait);
      if (writes && builder_.current(live.id).valid()) replaced.push_back(builder_.current(live.id));
    }
    std::sort(before.begin(), before.end());
    before.erase(std::unique(before.begin(), before.end()), before.end());
    for (const OpId other : before) builder_.order(other, id);

    const std::vector<VersionId> made = builder_.run(op, touches);
    streams_.push_back(op.stream);
    for (std::size_t i = 0; i < touches.size(); ++i) {
      Live& live = live_[index_[touches[i].buffer.index()]];
      if (touches[i].access == Access::kRead)
        live.readers.push_back(id);
      else if (touches[i].access == Access::kView)
        live.views.push_back(made[i]);
    }
    for (const Touch& touch : touches) {
      Live& live = live_[index_[touch.buffer.index()]];
      if (touch.access == Access::kRead || touch.access == Access::kView) continue;
      live.writer = id, live.readers.clear(), live.views.clear();
    }
    std::sort(replaced.begin(), replaced.end());
    replaced.erase(std::unique(replaced.begin(), replaced.end()), replaced.end());
    for (const VersionId version : replaced)
      if (random_.chance(70)) builder_.forget(version);
  }

  void free(std::size_t i) {
    live_[i].dead = true;
    builder_.free(live_[i].id);
    recent_.erase(std::find(recent_.rbegin(), recent_.rend(), i).base() - 1);  // found fastest from the end
  }

  void free_some(int op) {
    if (phase_ == Phase::kForward) {
      if (recent_.size() > 2 && random_.chance(65))
        free(recent_[recent_.size() - 1 - random_.below(std::min<std::size_t>(recent_.size(), 8))]);
      if (op == ops_ / 4) builder_.free(batch_), live_[index_[batch_.index()]].dead = true;
      if (random_.chance(1)) free(add_alloc(StreamId{0}));  // never used
      return;
    }
    // From backward on, at most 3 buffers stay, and one more for every three ops that backward still has. Each time,
    // one of the last three is freed. A few outlive the step.
    const std::size_t left = 3 + static_cast<std::size_t>(std::max(0, ops_ * 9 / 10 - op)) / 3;
    while (recent_.size() > left) free(recent_[recent_.size() - 1 - random_.below(3)]);
  }

  Random random_;
  int ops_;
  bool timed_, small_ = false, two_streams_ = false;
  TraceBuilder builder_;
  std::vector<Live> live_;
  std::vector<std::size_t> index_;   ///< in live_, by buffer
  std::vector<std::size_t> recent_;  ///< index in live_ of buffers that may be freed, oldest first
  std::vector<StreamId> streams_;    ///< by op
  BufferId batch_;
  Phase phase_ = Phase::kUnknown;
  std::int64_t clock_ = 0, address_ = 0x7f0000000000;
};

/// A random but valid trace of `ops` ops. Sizes are small (at most 16 KiB each), so that the bytes can be real.
inline Trace random_trace(std::uint64_t seed, int ops) { return RandomProgram{seed, ops}.make(); }

/// A random step of `ops` ops and buffers of 512 B to 2 KiB (a few have 0 B), in which one op may read, view, update
/// and overwrite buffers.
inline Trace small_step(std::uint64_t seed, int ops) { return RandomProgram{seed, ops}.make_small(); }

}  // namespace tidepool::tests
