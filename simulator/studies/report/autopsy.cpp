#include "simulator/studies/report/autopsy.hpp"

#include <algorithm>
#include <deque>

#include "simulator/studies/sweep/least_capacity.hpp"
#include "simulator/studies/sweep/result_row.hpp"

namespace tidepool {
namespace {

// Number of ops. For longer traces, fewer remedies are tried, and the least capacity is not searched for.
constexpr std::size_t kQuick = 20'000;

std::vector<Occupant> occupants_at_end(const Trace& trace, const History& history, OpId op) {
  // By buffer: the first use at or after `op`.
  std::vector<OpId> next(trace.buffers().size());
  const std::size_t first = op.valid() ? op.index() : trace.ops().size();
  for (std::size_t i = trace.ops().size(); i-- > first;)
    for (const Use& use : trace.uses(OpId{i}))
      next[trace.version(use.in.valid() ? use.in : use.out).buffer.index()] = OpId{i};
  std::vector<Occupant> occupants;
  for (const Stay& stay : history.stays)
    if (stay.leaving == Leaving::kStays)
      occupants.push_back({.buffer = stay.buffer,
                           .offset = stay.offset,
                           .held = stay.held,
                           .needed = op.valid() && next[stay.buffer.index()] == op,
                           .next_use = next[stay.buffer.index()]});
  std::stable_sort(occupants.begin(), occupants.end(),
                   [](const Occupant& a, const Occupant& b) { return a.offset < b.offset; });
  return occupants;
}

/// Order of next uses: a later one ranks higher, and a buffer without a next use ranks highest.
std::size_t rank(OpId next_use) { return next_use.valid() ? next_use.index() : ~std::size_t{}; }

Remedy attempt(const Trace& trace, RunSpec spec, const Spec& pool, const PolicyChain& policy) {
  spec.pool = pool;
  spec.policy = policy;
  const Result result = try_simulate(trace, spec);
  Remedy remedy{.pool = pool.text, .policy = policy.text, .outcome = result.outcome};
  if (result.outcome == Outcome::kOk && result.baseline > Nanos{})
    remedy.overhead = static_cast<double>((result.totals.makespan - result.baseline).count()) /
                      static_cast<double>(result.baseline.count());
  return remedy;
}

std::vector<Remedy> remedies_for(const Trace& trace, const RunSpec& spec) {
  std::vector<PolicyChain> policies{spec.policy, "dtr-eq", "lru-swap"};
  if (trace.ops().size() <= kQuick) policies.insert(policies.end(), {"autoswap", "tide"});
  std::vector<Remedy> remedies;
  const auto add = [&](const Spec& pool, const PolicyChain& policy) {
    const bool known = std::any_of(remedies.begin(), remedies.end(), [&](const Remedy& other) {
      return other.pool == pool.text && other.policy == policy.text;
    });
    if (!known && (pool != spec.pool || policy != spec.policy)) remedies.push_back(attempt(trace, spec, pool, policy));
  };
  for (const PolicyChain& policy : policies) add(spec.pool, policy);
  for (const char* pool : {"best-fit", "pytorch-expandable"}) add(pool, spec.policy);
  if (trace.ops().size() <= kQuick) add("tide-pool", spec.policy);
  for (const PolicyChain& policy : policies) add("best-fit", policy);
  std::stable_sort(remedies.begin(), remedies.end(), [](const Remedy& a, const Remedy& b) {
    const bool a_ok = a.outcome == Outcome::kOk, b_ok = b.outcome == Outcome::kOk;
    return a_ok != b_ok ? a_ok : a_ok && a.overhead < b.overhead;
  });
  return remedies;
}

std::optional<Bytes> least_capacity_for(const Trace& trace, const RunSpec& spec) {
  const Bytes peak = ideal_peak(trace, spec.assume), step{std::max<std::int64_t>(1, peak.count() / 100)};
  const auto works = [&](std::int64_t steps) {
    RunSpec larger = spec;
    larger.capacity = step * steps;
    return try_simulate(trace, larger).outcome == Outcome::kOk;
  };
  const std::int64_t tried = spec.capacity / step, most = 4 * std::max<std::int64_t>(tried + 1, 101);
  Bisection search{static_cast<std::size_t>(most - tried)};
  for (auto wanted = search.wanted(); !wanted.empty(); wanted = search.wanted())
    for (const std::size_t place : wanted) search.tell(place, works(tried + 1 + static_cast<std::int64_t>(place)));
  const std::optional<std::size_t> least = search.least();
  return least ? std::optional{step * (tried + 1 + static_cast<std::int64_t>(*least))} : std::nullopt;
}

}  // namespace

Eviction cheapest_window(std::span<const Occupant> occupants, Bytes end, Bytes wanted) {
  // Any window can be moved until it begins at 0 or at an occupant's end, or ends at `end` or at an occupant's begin,
  // without overlapping further occupants. So only these windows are tried.
  std::vector<Bytes> starts{Bytes{}, end - wanted};
  for (const Occupant& occupant : occupants) {
    starts.push_back(occupant.offset + occupant.held);
    starts.push_back(occupant.offset - wanted);
  }
  std::sort(starts.begin(), starts.end());
  starts.erase(std::unique(starts.begin(), starts.end()), starts.end());
  const auto rank_of = [&](std::size_t i) { return rank(occupants[i].next_use); };
  std::optional<Bytes> least;
  std::size_t best_first = 0, best_last = 0, best_rank = 0;
  std::size_t first = 0, last = 0;  // occupants that overlap the window
  // Of the occupants in the window: those that are used before all others at higher addresses. The front is used first.
  std::deque<std::size_t> soonest;
  Bytes held, needed;
  for (const Bytes start : starts) {
    if (start < Bytes{} || start + wanted > end) continue;
    for (; last < occupants.size() && occupants[last].offset < start + wanted; ++last) {
      (occupants[last].needed ? needed : held) += occupants[last].held;
      while (!soonest.empty() && rank_of(soonest.back()) >= rank_of(last)) soonest.pop_back();
      soonest.push_back(last);
    }
    for (; first < last && occupants[first].offset + occupants[first].held <= start; ++first) {
      (occupants[first].needed ? needed : held) -= occupants[first].held;
      if (soonest.front() == first) soonest.pop_front();
    }
    if (needed > Bytes{} || (least && held > *least)) continue;
    const std::size_t earliest = soonest.empty() ? ~std::size_t{} : rank_of(soonest.front());
    if (least && held == *least && earliest <= best_rank) continue;
    least = held;
    best_first = first;
    best_last = last;
    best_rank = earliest;
  }
  Eviction eviction;
  if (!least) return eviction;
  eviction.held = *least;
  for (std::size_t i = best_first; i < best_last; ++i) eviction.buffers.push_back(occupants[i].buffer);
  return eviction;
}

Eviction least_buffers(std::span<const Occupant> occupants, Bytes missing) {
  std::vector<Occupant> may_go;
  for (const Occupant& occupant : occupants)
    if (!occupant.needed) may_go.push_back(occupant);
  std::stable_sort(may_go.begin(), may_go.end(), [](const Occupant& a, const Occupant& b) { return a.held < b.held; });
  Eviction eviction{.buffers = {}, .held = {}, .side_by_side = false};
  while (missing > eviction.held && !may_go.empty()) {
    const auto enough = std::lower_bound(may_go.begin(), may_go.end(), missing - eviction.held,
                                         [](const Occupant& o, Bytes bytes) { return o.held < bytes; });
    const auto next = enough != may_go.end() ? enough : std::prev(may_go.end());
    eviction.buffers.push_back(next->buffer);
    eviction.held += next->held;
    may_go.erase(next);
  }
  if (missing > eviction.held) eviction = {.buffers = {}, .held = {}, .side_by_side = false};
  return eviction;
}

std::optional<Autopsy> autopsy_of(const Trace& trace, const RunSpec& spec, const History& history) {
  const std::optional<Shortage> shortage = shortage_of(trace, spec);
  if (!shortage) return {};
  Autopsy autopsy;
  autopsy.shortage = *shortage;
  autopsy.capacity = spec.capacity;
  autopsy.occupants = occupants_at_end(trace, history, shortage->before);
  for (const Occupant& occupant : autopsy.occupants) {
    autopsy.placed += occupant.held;
    if (occupant.needed) autopsy.needed += occupant.held;
  }
  const bool one_piece = history.segments.empty() && std::none_of(autopsy.occupants.begin(), autopsy.occupants.end(),
                                                                  [](const auto& o) { return o.offset == kNoAddress; });
  autopsy.eviction = one_piece ? cheapest_window(autopsy.occupants, spec.capacity, shortage->size)
                               : least_buffers(autopsy.occupants, shortage->size - (spec.capacity - autopsy.placed));
  autopsy.remedies = remedies_for(trace, spec);
  if (trace.ops().size() <= kQuick) autopsy.least_capacity = least_capacity_for(trace, spec);
  return autopsy;
}

}  // namespace tidepool
