// The least recomputation time of a tiny step, found by trying all schedules.
#pragma once

#include <cstdint>
#include <optional>
#include <queue>
#include <utility>
#include <vector>

#include "traces/trace.hpp"

namespace tidepool::tests {

/// Shortest path over states: (ops of the program that have run, versions in memory). A run needs its inputs in memory,
/// and free memory only for outputs that are absent. An output written in place may replace its old version or get
/// memory of its own. Any version may be dropped, and any op but a source may run again at any time. These rules allow
/// all that a plan may do, so the best schedule is at least as fast as any plan. Times in ns; none if there is no
/// schedule. One stream; at most 12 versions.
class BestSchedule {
 public:
  explicit BestSchedule(const Trace& trace) : trace_{trace} {}

  std::optional<std::int64_t> time(Bytes capacity) {
    capacity_ = capacity;
    least_.assign((trace_.ops().size() + 1) << trace_.versions().size(), kFar);
    std::uint32_t there = 0;
    for (std::size_t b = 0; b < trace_.buffers().size(); ++b)
      if (trace_.buffers()[b].born_before) there |= bit(trace_.first_version(BufferId{b}));
    std::uint32_t wanted = 0;
    for (const VersionId v : trace_.outputs()) wanted |= bit(trace_.root(v));
    if (bytes(there) > capacity_) return std::nullopt;
    reach({0, there}, 0);
    while (!open_.empty()) {
      const auto [negative, state] = open_.top();
      open_.pop();
      const std::int64_t time = -negative;
      if (least_[index(state)] < time) continue;
      if (state.first == trace_.ops().size() && (state.second & wanted) == wanted) {
        open_ = {};
        return time;
      }
      for (std::uint32_t rest = state.second; rest != 0; rest &= rest - 1)
        reach({state.first, state.second & ~(rest & -rest)}, time);
      for (std::uint32_t op = 0; op <= state.first && op < trace_.ops().size(); ++op)
        if (op == state.first || trace_.ops()[op].kind != OpKind::kSource) run(state, op, time);
    }
    return std::nullopt;
  }

 private:
  using State = std::pair<std::uint32_t, std::uint32_t>;

  static constexpr std::int64_t kFar = std::int64_t{1} << 60;

  std::size_t index(const State& state) const {
    return (std::size_t{state.first} << trace_.versions().size()) + state.second;
  }
  static std::uint32_t bit(VersionId v) { return 1u << v.value(); }

  Bytes bytes(std::uint32_t there) const {
    Bytes sum;
    for (std::uint32_t v = 0; v < trace_.versions().size(); ++v)
      if ((there >> v & 1) != 0) sum += trace_.size(VersionId{v});
    return sum;
  }

  void reach(State state, std::int64_t time) {
    std::int64_t& least = least_[index(state)];
    if (least <= time) return;
    least = time;
    open_.push({-time, state});
  }

  void run(const State& state, std::uint32_t op, std::int64_t time) {
    std::uint32_t inputs = 0, outputs = 0, replaced = 0;
    for (const Use& use : trace_.uses(OpId{op}))
      if (use.in.valid()) inputs |= bit(trace_.root(use.in));
    if ((state.second & inputs) != inputs) return;
    for (const VersionId made : trace_.made(OpId{op})) {
      outputs |= bit(made);
      if (const VersionId parent = trace_.version(made).parent; parent.valid()) replaced |= bit(parent);
    }
    const std::uint32_t position = state.first + (op == state.first ? 1 : 0);
    const std::int64_t end = time + trace_.ops()[op].duration.count();
    for (std::uint32_t gone = replaced;; gone = (gone - 1) & replaced) {  // every choice of versions replaced in place
      const std::uint32_t after = (state.second | outputs) & ~gone;
      if (bytes(after) <= capacity_) reach({position, after}, end);
      if (gone == 0) break;
    }
  }

  const Trace& trace_;
  Bytes capacity_;
  std::vector<std::int64_t> least_;  // by index()
  std::priority_queue<std::pair<std::int64_t, State>> open_;
};

}  // namespace tidepool::tests
