#include "simulator/studies/ranks/rendezvous.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <barrier>
#include <thread>

#include "traces/base/refuse.hpp"

namespace tidepool {
namespace {

constexpr Nanos kUnknown{-1};

/// The run of one rank between collectives. The host issues ops in order; each stream runs its own ops in order.
class RankRun {
 public:
  RankRun(const RankProgram& program, const std::vector<CollectiveTimes>& collectives)
      : program_{program},
        collectives_{collectives},
        times_(program.ops.size(), {kUnknown, kUnknown, kUnknown}),
        queues_(program.streams),
        host_{program.start} {}

  /// Runs all ops that do not depend on a collective that has not ended.
  void advance() {
    while (issue() || run_streams()) {
    }
  }

  /// The ops of collectives that the rank has reached and whose end is unknown, lowest stream first.
  std::vector<std::uint32_t> waiting() const {
    std::vector<std::uint32_t> ops;
    for (const Queue& queue : queues_)
      if (queue.next < queue.ops.size() && times_[queue.ops[queue.next]].start != kUnknown)
        ops.push_back(queue.ops[queue.next]);
    return ops;
  }
  bool done() const { return run_ == program_.ops.size(); }
  const OpTimes& at(std::uint32_t id) const { return times_[id]; }
  std::vector<OpTimes> take() { return std::move(times_); }

 private:
  struct Queue {
    std::vector<std::uint32_t> ops;  // issued
    std::size_t next = 0;            // the first op that has not ended
  };

  bool issue() {
    const std::size_t before = issued_;
    for (; issued_ < program_.ops.size(); ++issued_) {
      if (issued_ > 0 && program_.ops[issued_ - 1].host_wait) {
        if (times_[issued_ - 1].end == kUnknown) break;
        host_ = times_[issued_ - 1].end;
      }
      const RankOp& op = program_.ops[issued_];
      times_[issued_].launch = std::max(host_ + op.gap, program_.start);
      host_ += std::max(op.gap, Nanos{});
      queues_[op.stream.index()].ops.push_back(static_cast<std::uint32_t>(issued_));
    }
    return issued_ > before;
  }

  bool run_streams() {
    bool moved = false;
    for (Queue& queue : queues_)
      while (queue.next < queue.ops.size() && run(queue)) moved = true;
    return moved;
  }

  bool run(Queue& queue) {
    const std::uint32_t id = queue.ops[queue.next];
    const RankOp& op = program_.ops[id];
    OpTimes& times = times_[id];
    if (times.start == kUnknown && !start(queue, op, times)) return false;
    if (op.collective == RankOp::kNone)
      times.end = times.start + op.duration;
    else if (collectives_[op.collective].end == kUnknown)
      return false;
    else
      times.end = collectives_[op.collective].end;
    ++queue.next;
    ++run_;
    return true;
  }

  bool start(const Queue& queue, const RankOp& op, OpTimes& times) const {
    Nanos ready = times.launch;
    const auto wait_for = [&](std::uint32_t id, Awaited why) {
      if (times_[id].end <= ready) return;
      ready = times_[id].end;
      times.awaited = why;
      times.after = id;
    };
    for (const std::uint32_t before : program_.ordered_after(op))
      if (times_[before].end == kUnknown) return false;
    if (queue.next > 0) wait_for(queue.ops[queue.next - 1], Awaited::kStream);
    for (const std::uint32_t before : program_.ordered_after(op)) wait_for(before, Awaited::kOrder);
    times.start = ready + op.lag;
    return true;
  }

  const RankProgram& program_;
  const std::vector<CollectiveTimes>& collectives_;
  std::vector<OpTimes> times_;  // by op
  std::vector<Queue> queues_;   // by stream
  Nanos host_;
  std::size_t issued_ = 0, run_ = 0;
};

class JobRun {
 public:
  JobRun(const LoadedJob& job, const std::string& path, const std::vector<RankProgram>& programs,
         const std::vector<Nanos>& costs)
      : job_{job.job}, path_{path}, programs_{programs}, costs_{costs} {
    collectives_.assign(job_.collectives.size(), {kUnknown, kUnknown});
    for (const RankProgram& program : programs) ranks_.emplace_back(program, collectives_);
    missing_.reserve(job_.collectives.size());
    for (const JobCollective& collective : job_.collectives) missing_.push_back(collective.ops.size());
    counted_.resize(ranks_.size());
  }

  JobTimes run(std::size_t threads) {
    threads = std::clamp(threads, std::size_t{1}, ranks_.size());
    std::barrier barrier{static_cast<std::ptrdiff_t>(threads), [&]() noexcept { meet(); }};
    const auto work = [&](std::size_t first) {
      while (!ended_) {
        for (std::size_t rank = first; rank < ranks_.size(); rank += threads) ranks_[rank].advance();
        barrier.arrive_and_wait();
      }
    };
    std::vector<std::jthread> others;
    for (std::size_t i = 1; i < threads; ++i) others.emplace_back(work, i);
    work(0);
    others.clear();
    if (!std::all_of(ranks_.begin(), ranks_.end(), [](const RankRun& rank) { return rank.done(); })) refuse_deadlock();
    JobTimes times;
    for (RankRun& rank : ranks_) times.ranks.push_back(rank.take());
    for (const std::vector<OpTimes>& rank : times.ranks)
      for (const OpTimes& op : rank) times.makespan = std::max(times.makespan, op.end);
    times.collectives = std::move(collectives_);
    return times;
  }

 private:
  /// Begins and ends the collectives whose ranks have all arrived. Called between rounds, by one thread.
  void meet() {
    bool any = false;
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
      std::vector<std::uint32_t> waiting = ranks_[rank].waiting();
      for (const std::uint32_t id : waiting) {
        if (std::find(counted_[rank].begin(), counted_[rank].end(), id) != counted_[rank].end()) continue;
        const std::uint32_t collective = programs_[rank].ops[id].collective;
        CollectiveTimes& times = collectives_[collective];
        const Nanos arrival = ranks_[rank].at(id).start;
        if (arrival > times.begin) times.begin = arrival, times.last = rank;
        if (--missing_[collective] > 0) continue;
        times.end = times.begin + costs_[collective];
        any = true;
      }
      counted_[rank] = std::move(waiting);
    }
    ended_ = !any;
  }

  /// Refuses a job that cannot go on: ranks wait in collectives that other ranks do not reach, or ops are ordered after
  /// each other in a circle.
  [[noreturn]] void refuse_deadlock() const {
    std::vector<std::string> lines;
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank)
      for (const std::uint32_t id : counted_[rank]) {
        const std::uint32_t number = programs_[rank].ops[id].collective;
        const JobCollective& collective = job_.collectives[number];
        std::vector<std::size_t> absent;
        for (const std::size_t other : job_.groups[collective.group].ranks)
          if (!is_in(other, number)) absent.push_back(other);
        lines.push_back(fmt::format("rank {} is in {} (collective {}) and waits for rank {}", rank, collective.name,
                                    number, fmt::join(absent, ", ")));
      }
    if (lines.empty()) lines.emplace_back("ops are ordered after each other in a circle");
    refuse("{}: no rank can go on: {}; expected one order on all ranks", path_, fmt::join(lines, "; "));
  }

  bool is_in(std::size_t rank, std::uint32_t collective) const {
    return std::any_of(counted_[rank].begin(), counted_[rank].end(),
                       [&](std::uint32_t id) { return programs_[rank].ops[id].collective == collective; });
  }

  const Job& job_;
  const std::string& path_;
  const std::vector<RankProgram>& programs_;
  const std::vector<Nanos>& costs_;
  std::vector<CollectiveTimes> collectives_;
  std::vector<RankRun> ranks_;
  std::vector<std::size_t> missing_;                 // by collective: number of ranks that have not arrived
  std::vector<std::vector<std::uint32_t>> counted_;  // by rank: the ops in which it waits, counted as arrived
  bool ended_ = false;
};

}  // namespace

JobTimes simulate_job(const LoadedJob& job, const std::string& path, const std::vector<RankProgram>& programs,
                      const std::vector<Nanos>& costs, std::size_t threads) {
  return JobRun{job, path, programs, costs}.run(threads);
}

std::vector<Nanos> recorded_costs(const Job& job) {
  std::vector<Nanos> costs;
  for (const JobCollective& collective : job.collectives) costs.push_back(collective.cost);
  return costs;
}

}  // namespace tidepool
