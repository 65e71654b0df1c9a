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
#include "traces/job/like_ranks.hpp"

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

  /// See RankTrace::run_collectives_once().
  void run_collectives_once() {
    step_.run_collectives_once();
    alone_ = step_.with(costs_);
  }
  void follow(const Machine& machine, Bytes capacity, std::vector<Action> actions) {
    machine_ = machine;
    capacity_ = capacity;
    actions_ = std::move(actions);
  }
  void follow_nothing() {
    std::vector<Action> actions = unhindered_begin(alone_, true);
    for (const Action& action : unhindered_step(alone_)) actions.push_back(action);
    follow({}, kNoLimit, std::move(actions));
  }

  /// @param ends  lower bounds on the ends of the job's collectives
  void run(const std::vector<Nanos>& ends) {
    held_.assign(held_.size(), {});
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
  /// The time of each collective after the rank's arrival in the last run: its cost, and the wait for other ranks.
  std::vector<Nanos> moving() const {
    std::vector<Nanos> times = costs_;
    for (std::size_t i = 0; i < times.size(); ++i) times[i] += wait(i);
    return times;
  }
  /// The step in which collectives take these times.
  Trace with(const std::vector<Nanos>& moving) const { return step_.with(moving); }
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
  Nanos wait(std::size_t meeting) const { return run_.waits[step_.meetings()[meeting].op.index()]; }

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

/// Ranks that do the same work on equal parts of the machine. They follow one plan.
struct LikeRanks {
  std::vector<std::size_t> ranks;
  RunSpec spec;
  std::vector<Nanos> moving = {};  ///< the times of collectives in the step that was planned last
  Result result = {};              ///< of the plan that the ranks follow
};

/// The common step of ranks: a collective takes the least time that it takes on any of them in their last runs.
std::vector<Nanos> common_moving(const std::vector<Follower>& ranks, const LikeRanks& like) {
  std::vector<Nanos> times = ranks[like.ranks.front()].moving();
  for (const std::size_t rank : like.ranks) {
    const std::vector<Nanos> own = ranks[rank].moving();
    for (std::size_t i = 0; i < times.size(); ++i) times[i] = std::min(times[i], own[i]);
  }
  return times;
}

bool do_the_same_in_time(const Trace& a, const Trace& b) {
  return do_the_same(a, b) && std::equal(a.ops().begin(), a.ops().end(), b.ops().begin(),
                                         [](const Op& x, const Op& y) { return x.duration == y.duration; });
}

std::vector<LikeRanks> find_like_ranks(const std::vector<Follower>& ranks, const std::vector<RunSpec>& specs) {
  std::vector<LikeRanks> found;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    const auto same = std::find_if(found.begin(), found.end(), [&](const LikeRanks& like) {
      return like.spec.machine == specs[rank].machine && like.spec.capacity == specs[rank].capacity &&
             do_the_same_in_time(ranks[like.ranks.front()].alone(), ranks[rank].alone());
    });
    if (same == found.end())
      found.push_back({{rank}, specs[rank]});
    else
      same->ranks.push_back(rank);
  }
  return found;
}

void follow(std::vector<Follower>& ranks, const LikeRanks& like, const Result& result) {
  for (const std::size_t rank : like.ranks)
    ranks[rank].follow(like.spec.machine, like.spec.capacity, result.realised.actions);
}

/// Plans like ranks once more, one kind after the other, for the waits that the plans of all other ranks leave them. A
/// plan is taken if the job then ends earlier. Ends when a round gains nothing.
/// @param ranks     follow the plans of `likes`; meet() has been called
/// @param earliest  no plans let the job end earlier
void plan_again(std::vector<Follower>& ranks, std::vector<LikeRanks>& likes, std::size_t collectives,
                std::size_t threads, Nanos earliest) {
  Nanos end = end_of(ranks);
  for (bool gains = likes.size() > 1; gains && end > earliest;) {
    gains = false;
    for (LikeRanks& like : likes) {
      if (like.result.totals.eviction_count == 0) continue;  // its plan costs nothing
      for (const std::size_t rank : like.ranks) ranks[rank].follow_nothing();
      meet(ranks, collectives, threads);
      std::vector<Nanos> moving = common_moving(ranks, like);
      if (moving != like.moving) {
        like.moving = std::move(moving);
        Result result = simulate(ranks[like.ranks.front()].with(like.moving), like.spec, true);
        if (result.outcome == Outcome::kOk) {
          follow(ranks, like, result);
          meet(ranks, collectives, threads);
          if (end_of(ranks) < end) {
            end = end_of(ranks);
            like.result = std::move(result);
            gains = true;
          }
        }
      }
      follow(ranks, like, like.result);
    }
  }
  meet(ranks, collectives, threads);
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

/// What each rank runs, on its part of the machine.
std::vector<RunSpec> specs_of(const std::vector<Follower>& ranks, const SpecOfRank& spec) {
  std::vector<RunSpec> specs;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    RunSpec& own = specs.emplace_back(spec(ranks[i].alone()));
    own.machine = share_of(std::move(own.machine), i, ranks.size());
    own.machine.launch = Nanos{};
  }
  return specs;
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
    ranks.emplace_back(RankTrace{job.traces[i], programs[i], times.ranks[i]}, costs, programs[i].start);
  }
  std::vector<LikeRanks> likes = find_like_ranks(ranks, specs_of(ranks, spec));
  const bool in_step = likes.size() == 1 && std::all_of(ranks.begin(), ranks.end(), [&](const Follower& rank) {
                         return rank.start() == ranks.front().start();
                       });
  for (Follower& rank : ranks) {
    if (!in_step) rank.run_collectives_once();
    rank.follow_nothing();
  }
  meet(ranks, costs.size(), threads);
  JobPlans plans{.ranks = std::vector<RankPlan>(ranks.size()), .baseline = end_of(ranks), .bound = end_of(ranks)};
  std::vector<Nanos> waited;  // by rank: the time in which some stream waits for other ranks, without limits
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    plans.ranks[i].waited = ranks[i].waits();
    waited.push_back(ranks[i].waited_for_others());
  }
  std::vector<std::optional<Nanos>> bounds(likes.size());
  for_each_rank(likes.size(), threads, [&](std::size_t i) {
    LikeRanks& like = likes[i];
    const Follower& first = ranks[like.ranks.front()];
    like.moving = common_moving(ranks, like);
    like.result = simulate(first.with(like.moving), like.spec, true);
    bounds[i] = bound_of(first, like.spec);
  });
  for (const std::optional<Nanos>& bound : bounds)
    plans.bound = bound && plans.bound ? std::optional{std::max(*plans.bound, *bound)} : std::nullopt;
  const bool all = std::all_of(likes.begin(), likes.end(),
                               [](const LikeRanks& like) { return like.result.outcome == Outcome::kOk; });
  if (all) {
    for (const LikeRanks& like : likes) follow(ranks, like, like.result);
    meet(ranks, costs.size(), threads);
    plan_again(ranks, likes, costs.size(), threads, plans.bound.value_or(Nanos{}));
    plans.makespan = end_of(ranks);
  }
  for (const LikeRanks& like : likes)
    for (const std::size_t i : like.ranks) {
      RankPlan& plan = plans.ranks[i];
      plan.spec = like.spec;
      plan.ideal_peak = ranks[i].alone().ideal_peak();
      plan.like = like.ranks.front();
      plan.result = like.result;
      if (!all) continue;
      plan.waits = ranks[i].waits();
      plan.ends = ranks[i].end();
      plan.copies = copy_time(ranks[i].alone(), plan.spec.machine, plan.result.realised.actions);
      const Nanos instead_of_waits = std::max(waited[i] - ranks[i].waited_for_others(), Nanos{});
      plan.exposed = std::clamp(ranks[i].waited_for_copies() - instead_of_waits, Nanos{}, plan.copies);
    }
  return plans;
}

}  // namespace tidepool
