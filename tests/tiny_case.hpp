// Seeded tiny training steps of a few ops, with a machine and a capacity in which most of them do not fit. They are
// small enough for the search of all plans. Like real steps, they have views, updates in place, sources and several
// streams. The same seed gives the same step on every platform.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "simulator/machine.hpp"
#include "tests/random_trace.hpp"
#include "traces/builder.hpp"

namespace tidepool::tests {

/// A step that stays valid when parts of it are removed. Its trace has no views of buffers that do not exist yet, and
/// no touches of buffers that have been freed.
struct TinyRecipe {
  struct Buffer {
    int mebibytes = 1;
    bool existing = false;
    int last_op = -1;  ///< freed after this op; -1: outlives the step
  };
  struct Touch {
    std::size_t buffer = 0;
    Access access = Access::kRead;
    bool through_view = false;
  };
  struct Op {
    int milliseconds = 1;
    OpKind kind = OpKind::kKernel;
    bool random = false;
    int stream = 0;
    bool forgets = false;  ///< the program drops its references to versions that the op replaced
    std::vector<Touch> touches = {};
  };
  std::vector<Buffer> buffers = {};
  std::vector<Op> ops = {};
  Machine machine = {};
  int mebibytes = 0;        ///< capacity
  bool names_none = false;  ///< only contents of buffers from before the step are outputs

  Bytes capacity() const { return 1_MiB * mebibytes; }
  Trace trace() const;
};

/// Builder of a recipe's trace.
class TinyTrace {
 public:
  explicit TinyTrace(const TinyRecipe& recipe) : recipe_{recipe}, lives_(recipe.buffers.size()) {}

  Trace make() {
    for (std::size_t i = 0; i < lives_.size(); ++i)
      if (recipe_.buffers[i].existing) {
        lives_[i].id =
            builder_.existing({.size = 1_MiB * recipe_.buffers[i].mebibytes, .kind = BufferKind::kParameter});
        lives_[i].live = lives_[i].met = true;
      }
    for (std::size_t i = 0; i < recipe_.ops.size(); ++i) {
      run(recipe_.ops[i]);
      for (std::size_t b = 0; b < lives_.size(); ++b)
        if (lives_[b].live && recipe_.buffers[b].last_op == static_cast<int>(i)) {
          builder_.free(lives_[b].id);
          lives_[b].live = false;
        }
    }
    if (recipe_.names_none) {
      builder_.only_given_outputs();
      for (std::size_t b = 0; b < lives_.size(); ++b)
        if (recipe_.buffers[b].existing && lives_[b].live) builder_.output(builder_.content(lives_[b].id));
    }
    return builder_.finish();
  }

 private:
  struct Life {
    BufferId id;
    bool live = false, met = false;
    VersionId view;
    std::optional<std::size_t> writer;
    std::vector<std::size_t> readers;
  };

  static bool writes(Access access) { return access != Access::kRead && access != Access::kView; }

  void run(const TinyRecipe::Op& op) {
    const StreamId stream = builder_.stream(std::to_string(op.stream));
    std::vector<TraceBuilder::Touch> touches;
    std::vector<VersionId> replaced;
    std::vector<std::size_t> lives, before;
    const auto wait = [&](std::size_t other) {
      if (streams_[other] != op.stream) before.push_back(other);
    };
    for (const TinyRecipe::Touch& touch : op.touches) {
      Life& life = lives_[touch.buffer];
      if (!life.met && touch.access != Access::kView) {
        life.id = builder_.alloc({.size = 1_MiB * recipe_.buffers[touch.buffer].mebibytes, .stream = stream});
        life.live = life.met = true;
      }
      if (!life.live) continue;
      TraceBuilder::Touch made{life.id, touch.access};
      if (touch.through_view && life.view.valid() && touch.access == Access::kRead) made.through = life.view;
      if (life.writer) wait(*life.writer);
      if (writes(touch.access)) {
        std::for_each(life.readers.begin(), life.readers.end(), wait);
        if (builder_.current(life.id).valid()) replaced.push_back(builder_.current(life.id));
      }
      touches.push_back(made);
      lives.push_back(touch.buffer);
    }
    std::sort(before.begin(), before.end());
    before.erase(std::unique(before.begin(), before.end()), before.end());
    const std::size_t number = streams_.size();
    for (const std::size_t other : before) builder_.order(OpId{other}, OpId{number});
    const std::vector<VersionId> made = builder_.run(
        {.stream = stream, .kind = op.kind, .random = op.random, .duration = 1_ms * op.milliseconds}, touches);
    streams_.push_back(op.stream);
    for (std::size_t i = 0; i < touches.size(); ++i) {
      Life& life = lives_[lives[i]];
      if (touches[i].access == Access::kView) life.view = made[i];
      if (!writes(touches[i].access)) life.readers.push_back(number);
    }
    for (std::size_t i = 0; i < touches.size(); ++i)
      if (Life& life = lives_[lives[i]]; writes(touches[i].access))
        life.writer = number, life.readers.clear(), life.view = VersionId{};
    std::sort(replaced.begin(), replaced.end());
    replaced.erase(std::unique(replaced.begin(), replaced.end()), replaced.end());
    if (op.forgets)
      for (const VersionId version : replaced) builder_.forget(version);
  }

  const TinyRecipe& recipe_;
  TraceBuilder builder_;
  std::vector<Life> lives_;
  std::vector<int> streams_;  ///< by op
};

inline Trace TinyRecipe::trace() const { return TinyTrace{*this}.make(); }

/// The most bytes that one op uses at once, with its outputs.
inline Bytes working_set(const Trace& trace) {
  Bytes most;
  for (std::size_t i = 0; i < trace.ops().size(); ++i) {
    std::vector<BufferId> used;
    for (const Use& use : trace.uses(OpId{i})) used.push_back(trace.version(use.in.valid() ? use.in : use.out).buffer);
    std::sort(used.begin(), used.end());
    used.erase(std::unique(used.begin(), used.end()), used.end());
    Bytes sum;
    for (const BufferId b : used) sum += trace.buffer(b).size;
    most = std::max(most, sum);
  }
  return most;
}

/// Makes recipes. Up to three buffers exist before the step. Ops read, view, update and make buffers, mostly recent
/// ones. Most ops of the second half read any earlier buffer too, as a backward phase reads what forward has left.
class TinyGenerator {
 public:
  explicit TinyGenerator(std::uint64_t seed) : random_{seed * 0x9e3779b97f4a7c15 + 1} {}

  /// @param most_ops  at least 3
  TinyRecipe make(std::size_t most_ops) {
    recipe_ = {};
    const std::size_t ops = 3 + random_.below(most_ops - 2);
    streams_ = random_.chance(20) ? 2 : 1;
    for (std::size_t n = random_.below(4); n > 0; --n) add({.mebibytes = size(), .existing = true});
    for (std::size_t i = 0; i < ops; ++i) make_op(i, ops);
    free_some();
    recipe_.names_none = random_.chance(30);
    recipe_.machine = machine();
    const Trace trace = recipe_.trace();
    const auto least = static_cast<std::size_t>(working_set(trace) / 1_MiB);
    const auto peak = static_cast<std::size_t>(trace.ideal_peak() / 1_MiB);
    const std::size_t more = peak > least ? std::min(random_.below(peak - least), random_.below(peak - least)) : 0;
    recipe_.mebibytes = static_cast<int>(least + more);
    return recipe_;
  }

 private:
  std::size_t add(TinyRecipe::Buffer buffer) {
    recipe_.buffers.push_back(buffer);
    return recipe_.buffers.size() - 1;
  }
  int size() { return static_cast<int>(1 + random_.below(random_.chance(70) ? 4 : 8)); }
  std::size_t any() { return random_.below(recipe_.buffers.size()); }
  std::size_t recent() {
    const std::size_t count = recipe_.buffers.size();
    return random_.chance(60) ? count - 1 - random_.below(std::min<std::size_t>(count, 3)) : any();
  }

  void make_op(std::size_t number, std::size_t ops) {
    TinyRecipe::Op& op = recipe_.ops.emplace_back();
    op.milliseconds = static_cast<int>(random_.chance(5) ? 0 : 1 + random_.below(random_.chance(80) ? 8 : 20));
    op.stream = static_cast<int>(random_.below(streams_));
    op.forgets = random_.chance(60);
    op.random = random_.chance(10);
    const bool backward = number * 2 >= ops;
    const auto read = [&](std::size_t buffer) { op.touches.push_back({buffer, Access::kRead, random_.chance(30)}); };
    const auto make = [&] { op.touches.push_back({add({.mebibytes = size()}), Access::kWrite}); };
    if (recipe_.buffers.empty() || (number == 0 && random_.chance(40))) {
      op.kind = OpKind::kSource;
      make();
      return;
    }
    const std::size_t roll = random_.below(100);
    if (roll < 8) {  // a view takes no time
      op.milliseconds = 0, op.random = false;
      op.touches.push_back({recent(), Access::kView});
      return;
    }
    // Backward ops read buffers that the forward phase has left: any of the earlier ones.
    if (backward && random_.chance(70)) read(any());
    for (std::size_t n = random_.below(3); n > 0; --n) read(recent());
    if (roll < 38) {
      const Access access = random_.chance(75)   ? Access::kReadWrite
                            : random_.chance(50) ? Access::kWrite
                                                 : Access::kTouch;
      op.touches.push_back({random_.chance(50) ? any() : recent(), access});
      if (random_.chance(40)) make();  // an update with one more output
      if (random_.chance(10)) make();
      return;
    }
    if (roll < 45 && number > 0) return;  // an op that only reads, as when a loss is printed
    make();
    if (random_.chance(25)) make();
    if (random_.chance(3)) op.touches.push_back({add({.mebibytes = size()}), Access::kTouch});  // not written before
  }

  void free_some() {
    for (std::size_t b = 0; b < recipe_.buffers.size(); ++b) {
      int last = -1;
      for (std::size_t i = 0; i < recipe_.ops.size(); ++i)
        for (const TinyRecipe::Touch& touch : recipe_.ops[i].touches)
          if (touch.buffer == b) last = static_cast<int>(i);
      const bool existing = recipe_.buffers[b].existing;
      if (last < 0 || random_.chance(existing ? 80 : 25)) continue;
      const auto later = static_cast<std::size_t>(static_cast<int>(recipe_.ops.size()) - last);
      recipe_.buffers[b].last_op = last + static_cast<int>(random_.chance(75) ? 0 : random_.below(later));
    }
  }

  /// A machine whose links are between much faster and much slower than the ops, with or without latency.
  Machine machine() {
    const auto link = [&] {
      static constexpr std::int64_t kRates[] = {250, 500, 1'000, 2'000, 8'000};
      Link made;
      made.rate = BytesPerSecond{kRates[random_.below(5)] * (std::int64_t{1} << 20)};
      made.latency = random_.chance(50) ? Nanos{} : Nanos{static_cast<std::int64_t>(1 + random_.below(5)) * 100'000};
      return made;
    };
    Machine made;
    made.name = "tiny";
    made.capacity = 1_GiB;
    made.h2d = link();
    made.d2h = random_.chance(50) ? made.h2d : link();
    made.device_copy = BytesPerSecond{std::int64_t{random_.chance(80) ? 500'000 : 4'000} << 20};
    if (random_.chance(15)) made.submit = 200_us;
    if (random_.chance(5)) made.launch = 300_us;
    if (random_.chance(20)) made.h2d.duplex_ppm = made.d2h.duplex_ppm = 600'000;
    made.source = "made up for tests";
    return made;
  }

  Random random_;
  TinyRecipe recipe_;
  std::size_t streams_ = 1;
};

/// A tiny step for a seed, with at most `most_ops` ops.
inline TinyRecipe tiny_recipe(std::uint64_t seed, std::size_t most_ops = 6) {
  return TinyGenerator{seed}.make(most_ops);
}

/// A tiny step for a seed with each op on one of two to four streams. The directions of its link do not slow each other
/// down, since the search refuses several streams on links whose directions do.
inline TinyRecipe tiny_recipe_of_streams(std::uint64_t seed, std::size_t most_ops = 6) {
  TinyRecipe recipe = tiny_recipe(seed, most_ops);
  Random random{seed * 0x9e3779b97f4a7c15 + 2};
  const std::size_t streams = 2 + random.below(3);
  for (std::size_t i = 0; i < recipe.ops.size(); ++i)
    recipe.ops[i].stream = static_cast<int>(i < 2 ? i : random.below(streams));
  recipe.machine.h2d.duplex_ppm = recipe.machine.d2h.duplex_ppm = 1'000'000;
  return recipe;
}

}  // namespace tidepool::tests
