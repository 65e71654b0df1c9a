#include "simulator/studies/ranks/job_plans.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>

#include "simulator/engine/machine/sharing.hpp"
#include "simulator/engine/op_ends.hpp"
#include "simulator/run.hpp"
#include "simulator/solvers/bounds/bound.hpp"
#include "traces/base/refuse.hpp"

namespace tidepool {
namespace {

/// Execution of one rank's planned step, whose collectives end at the times of the job.
class Follower {
 public:
  /// @param start  time at which the rank's trace begins, since the start of the job
  Follower(const RankTrace& step, const std::vector<Nanos>& costs, Nanos start)
      : step_{step},
        start_{start},
        costs_{costs_of(step, costs)},
        alone_{step.with(costs_)},
        held_(alone_.ops().size()) {}

  void follow(const Machine& machine, Bytes capacity, std::vector<Action> actions) {
    machine_ = machine;
    capacity_ = capacity;
    actions_ = std::move(actions);
    held_.assign(held_.size(), {});
  }

  /// @param ends  lower bounds on the ends of the job's collectives
  void run(const std::vector<Nanos>& ends) {
    for (const RankTrace::Meeting& meeting : step_.meetings())
      held_[meeting.op.index()].until = ends[meeting.collective] - start_;
    run_ = op_ends(alone_, machine_, capacity_, actions_, held_);
  }
  void put_ends(std::vector<Nanos>& ends) const {
    for (const RankTrace::Meeting& meeting : step_.meetings())
      ends[meeting.collective] = std::max(ends[meeting.collective], start_ + run_.ends[meeting.op.index()]);
  }

  /// The step in which collectives take only their own time, without waits.
  const Trace& alone() const { return alone_; }
  /// The step in which collectives also take the time of their waits in the last run.
  Trace with_waits() const {
    std::vector<Nanos> moving = costs_;
    for (std::size_t i = 0; i < moving.size(); ++i) moving[i] += wait(i);
    return step_.with(moving);
  }
  Nanos waits() const {
    Nanos sum;
    for (std::size_t i = 0; i < costs_.size(); ++i) sum += wait(i);
    return sum;
  }
  Nanos start() const { return start_; }
  Nanos end() const {
    return start_ + (run_.ends.empty() ? Nanos{} : *std::max_element(run_.ends.begin(), run_.ends.end()));
  }
  /// In the last run: the time in which some stream waited for copies, and that in which some stream waited for ranks.
  Nanos waited_for_copies() const { return run_.for_copies; }
  Nanos waited_for_others() const { return run_.for_others; }

 private:
  static std::vector<Nanos> costs_of(const RankTrace& step, const std::vector<Nanos>& costs) {
    std::vector<Nanos> own;
    for (const RankTrace::Meeting& meeting : step.meetings()) own.push_back(costs[meeting.collective]);
    return own;
  }
  Nanos wait(std::size_t meeting) const {
    const std::size_t op = step_.meetings()[meeting].op.index();
    return run_.ends[op] - held_[op].alone;
  }

  RankTrace step_;
  Nanos start_;
  std::vector<Nanos> costs_;  // by meeting
  Trace alone_;
  Machine machine_;
  Bytes capacity_;
  std::vector<Action> actions_;
  std::vector<Timeline::Held> held_;  // by op
  OpEnds run_;                        // of the last run
};

/// Calls work(rank) for all ranks on several threads. Rethrows an exception of a call.
template <class Work>
void for_each_rank(std::size_t ranks, std::size_t threads, const Work& work) {
  std::atomic<std::size_t> next = 0;
  std::mutex mutex;
  std::exception_ptr failure;
  const auto take = [&] {
    for (std::size_t rank = next++; rank < ranks; rank = next++) try {
        work(rank);
      } catch (...) {
        const std::lock_guard lock{mutex};
        failure = std::current_exception();
      }
  };
  {
    std::vector<std::jthread> others;
    for (std::size_t i = 1; i < std::min(threads, ranks); ++i) others.emplace_back(take);
    take();
  }
  if (failure) std::rethrow_exception(failure);
}

/// Runs all ranks again and again, until every collective ends at the same time on all of them. The ends never become
/// earlier from round to round. Each round fixes the end of at least one more collective, so n collectives need at most
/// n + 1 rounds.
void meet(std::vector<Follower>& ranks, std::size_t collectives, std::size_t threads) {
  std::vector<Nanos> ends(collectives), before;
  do {
    before = ends;
    for_each_rank(ranks.size(), threads, [&](std::size_t rank) { ranks[rank].run(before); });
    for (const Follower& rank : ranks) rank.put_ends(ends);
  } while (ends != before);
}

Nanos end_of(const std::vector<Follower>& ranks) {
  Nanos end;
  for (const Follower& rank : ranks) end = std::max(end, rank.end());
  return end;
}

/// A lower bound on the end of the rank's step without waits for other ranks, since the job's start; none if no plan
/// exists.
std::optional<Nanos> bound_of(const Follower& rank, const RunSpec& spec) {
  const std::optional<Bound> bound = best_bound(query_of(rank.alone(), spec));
  if (bound && !bound->feasible) return {};
  return rank.start() + (bound ? bound->makespan : Nanos{});
}

/// Sum of the times of a plan's copies, each as if it were alone on its link.
Nanos copy_time(const Trace& step, const Machine& machine, const std::vector<Action>& actions) {
  Nanos sum;
  for (const Action& action : actions) {
    if (action.verb != Verb::kSwapOut && action.verb != Verb::kSwapIn) continue;
    const Link& link = action.verb == Verb::kSwapOut ? machine.d2h : machine.h2d;
    const Bytes size = step.size(VersionId{action.subject});
    const Cut pieces = machine.cut(size);
    for (std::int64_t i = 0; i < pieces.count; ++i) sum += link.time(std::min(pieces.size, size - pieces.size * i));
  }
  return sum;
}

}  // namespace

JobPlans plan_job(const LoadedJob& job, const std::string& path, const JobChange& change, const SpecOfRank& spec,
                  std::size_t threads) {
  const auto [programs, costs] = changed_job(job, path, change);
  const JobTimes times = simulate_job(job, path, programs, costs, threads);
  std::vector<Follower> ranks;
  for (std::size_t i = 0; i < programs.size(); ++i) {
    if (job.traces[i].buffers().empty())
      refuse("{}: rank {}: the trace has no buffers; expected a recording of memory", path, i);
    Follower& rank =
        ranks.emplace_back(RankTrace{job.traces[i], programs[i], times.ranks[i]}, costs, programs[i].start);
    std::vector<Action> actions = unhindered_begin(job.traces[i], true);
    for (const Action& action : unhindered_step(job.traces[i])) actions.push_back(action);
    rank.follow({}, kNoLimit, std::move(actions));
  }
  meet(ranks, costs.size(), threads);
  JobPlans plans{.ranks = std::vector<RankPlan>(ranks.size()), .baseline = end_of(ranks), .bound = end_of(ranks)};
  std::vector<std::optional<Nanos>> bounds(ranks.size());
  std::vector<Nanos> waited(ranks.size());  // by rank: its waits for other ranks in the job without limits
  for_each_rank(ranks.size(), threads, [&](std::size_t i) {
    RankPlan& plan = plans.ranks[i];
    const Trace step = ranks[i].with_waits();
    plan.spec = spec(step);
    plan.spec.machine = share_of(std::move(plan.spec.machine), i, ranks.size());
    plan.spec.machine.launch = Nanos{};
    plan.ideal_peak = step.ideal_peak();
    plan.waited = ranks[i].waits();
    waited[i] = ranks[i].waited_for_others();
    plan.result = simulate(step, plan.spec, true);
    bounds[i] = bound_of(ranks[i], plan.spec);
    ranks[i].follow(plan.spec.machine, plan.spec.capacity, plan.result.realised.actions);
  });
  for (const std::optional<Nanos>& bound : bounds)
    plans.bound = bound && plans.bound ? std::optional{std::max(*plans.bound, *bound)} : std::nullopt;
  if (std::any_of(plans.ranks.begin(), plans.ranks.end(),
                  [](const RankPlan& plan) { return plan.result.outcome != Outcome::kOk; }))
    return plans;
  meet(ranks, costs.size(), threads);
  plans.makespan = end_of(ranks);
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    RankPlan& plan = plans.ranks[i];
    plan.waits = ranks[i].waits();
    plan.ends = ranks[i].end();
    plan.copies = copy_time(ranks[i].alone(), plan.spec.machine, plan.result.realised.actions);
    const Nanos instead_of_waits = std::max(waited[i] - ranks[i].waited_for_others(), Nanos{});
    plan.exposed = std::clamp(ranks[i].waited_for_copies() - instead_of_waits, Nanos{}, plan.copies);
  }
  return plans;
}

}  // namespace tidepool
