// The bounds "knapsack" and "min-cut": time for ops that must run again, for plans that never swap.
//
// Ops that run again occupy their stream besides the first runs of all its ops. So the step takes at least the time of
// these runs on any one stream, here the one with the most work. Runs on other streams may overlap and do not count.
// knapsack_bounds and RecomputeCut say why so much must run again. Reruns after one instant and after another may be
// the same, so the bound takes the best single instant, or instants in consecutive windows of ops, where only the
// reruns within each window count.
#include "simulator/solvers/bounds/recompute_bounds.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <numeric>

#include "simulator/solvers/bounds/bound.hpp"
#include "simulator/solvers/bounds/op_bounds.hpp"

namespace tidepool {

namespace {

constexpr std::int32_t kParts = 20;        // parts into which a range is divided for a closer search
constexpr std::int32_t kFewParts = 6;      // the same for each of several windows
constexpr std::size_t kMostStretches = 8;  // windows whose bounds are added
constexpr std::int64_t kLeastShare = 20;   // a window counts if its promise is at least 1/20 of the largest one

/// Instants [first, last), and the op up to which recomputation counts.
struct InstantRange {
  std::int32_t first = 0, last = 0;
  std::int32_t until = 0;
  std::int64_t promise = 0;  // the largest knapsack bound in the range
};

/// Searches some instants of a range, none of them twice, and keeps the best.
class InstantSearch {
 public:
  InstantSearch(const RecomputeModel& model, Bytes capacity, const std::vector<std::int64_t>& promise,
                const InstantRange& stretch)
      : model_{model},
        capacity_{capacity},
        promise_{promise},
        stretch_{stretch},
        asked_(static_cast<std::size_t>(stretch.last - stretch.first)) {}

  /// @param parts  number of parts of the range, and later of each closer range around the best instant
  MinCutPlan run(std::int32_t parts) {
    std::int32_t first = stretch_.first, last = stretch_.last;
    best_.instant = first;
    while (best_.feasible && last > first) {
      const std::int32_t length = last - first;
      for (std::int32_t k = 0; k < parts && best_.feasible; ++k)
        ask_best(first + length * k / parts, first + length * (k + 1) / parts);
      if (length <= parts) break;
      // The part with the best instant, and its neighbours.
      const std::int32_t reach = (length + parts - 1) / parts;
      first = std::max(first, best_.instant - reach);
      last = std::min(last, best_.instant + reach + 1);
      if (last - first >= length) break;
    }
    return std::move(best_);
  }

 private:
  std::int64_t promise(std::int32_t instant) const { return promise_[static_cast<std::size_t>(instant)]; }
  bool asked(std::int32_t instant) const { return asked_[static_cast<std::size_t>(instant - stretch_.first)]; }

  /// Computes the cut at the most promising instant of [first, last).
  void ask_best(std::int32_t first, std::int32_t last) {
    std::int32_t instant = first;
    for (std::int32_t i = first; i < last; ++i)
      if (!asked(i) && (asked(instant) || promise(i) > promise(instant))) instant = i;
    if (first < last && !asked(instant)) ask(instant);
  }

  void ask(std::int32_t instant) {
    asked_[static_cast<std::size_t>(instant - stretch_.first)] = true;
    RecomputeCut cut{model_, instant, stretch_.until};
    const RecomputeCut::Answer answer = cut.bound((capacity_ - model_.taken(instant)).count(), price_, best_.bound);
    best_.flows += answer.flows;
    best_.feasible = answer.feasible;
    if (answer.price > 0) price_ = answer.price;
    if (answer.feasible && answer.bound <= best_.bound) return;
    best_.bound = answer.bound;
    best_.instant = instant;
    best_.choice = cut.choice();
  }

  const RecomputeModel& model_;
  const Bytes capacity_;
  const std::vector<std::int64_t>& promise_;
  const InstantRange stretch_;
  std::vector<bool> asked_;
  double price_ = 0;  // of the last instant; the price of the next one is similar
  MinCutPlan best_;
};

/// Windows of instants at each of which something must be recomputed, in the order of the step.
std::vector<InstantRange> stretches_of(const std::vector<std::int64_t>& promise) {
  std::vector<InstantRange> stretches;
  for (std::size_t i = 0; i < promise.size(); ++i) {
    if (promise[i] == 0) continue;
    const auto instant = static_cast<std::int32_t>(i);
    if (stretches.empty() || stretches.back().last < instant) stretches.push_back({instant, instant, 0, 0});
    stretches.back().last = instant + 1;
    stretches.back().promise = std::max(stretches.back().promise, promise[i]);
  }
  return stretches;
}

/// Keeps the windows with the largest promises, without those far below the largest. Each then extends to the next one.
void keep_largest(std::vector<InstantRange>& stretches, std::int32_t end) {
  std::stable_sort(stretches.begin(), stretches.end(),
                   [](const InstantRange& a, const InstantRange& b) { return a.promise > b.promise; });
  const std::int64_t least = stretches.front().promise / kLeastShare;
  std::erase_if(stretches, [&](const InstantRange& stretch) { return stretch.promise < least; });
  if (stretches.size() > kMostStretches) stretches.resize(kMostStretches);
  std::sort(stretches.begin(), stretches.end(),
            [](const InstantRange& a, const InstantRange& b) { return a.first < b.first; });
  for (std::size_t i = 0; i < stretches.size(); ++i)
    stretches[i].until = i + 1 < stretches.size() ? stretches[i + 1].first : end;
}

using RootItem = RecomputeModel::Item;

/// Prefix sums of bytes and costs over ranks that are added and removed. O(log n) each.
class RankedSums {
 public:
  explicit RankedSums(std::size_t ranks) : bytes_(ranks + 1), cost_(ranks + 1) {}

  void add(std::size_t rank, std::int64_t bytes, std::int64_t cost) {
    for (std::size_t i = rank + 1; i < bytes_.size(); i += i & -i) bytes_[i] += bytes, cost_[i] += cost;
    total_ += bytes;
  }
  std::int64_t total() const { return total_; }

  struct Prefix {
    std::size_t ranks = 0;  ///< number of ranks in the prefix
    std::int64_t bytes = 0, cost = 0;
  };
  /// The longest prefix with fewer than `limit` bytes.
  Prefix below(std::int64_t limit) const {
    Prefix prefix;
    for (std::size_t step = std::bit_floor(bytes_.size() - 1); step > 0; step /= 2)
      if (const std::size_t i = prefix.ranks + step; i < bytes_.size() && prefix.bytes + bytes_[i] < limit)
        prefix = {i, prefix.bytes + bytes_[i], prefix.cost + cost_[i]};
    return prefix;
  }

 private:
  std::vector<std::int64_t> bytes_, cost_;
  std::int64_t total_ = 0;
};

/// Replaceable versions that may be absent between uses, with the least cost per byte first.
std::vector<VersionId> by_density(const RecomputeModel& model) {
  std::vector<VersionId> order;
  for (std::size_t i = 0; i < model.items().size(); ++i) {
    const RootItem& item = model.items()[i];
    if (item.made != RecomputeModel::kNever && item.replaceable && item.bytes > 0 && item.needed > item.made)
      order.push_back(VersionId{i});
  }
  std::stable_sort(order.begin(), order.end(), [&](VersionId a, VersionId b) {
    const RootItem &x = model.item(a), &y = model.item(b);
    return static_cast<Int128>(x.cost) * y.bytes < static_cast<Int128>(y.cost) * x.bytes;
  });
  return order;
}

std::string after_op(const Trace& trace, std::int32_t instant) {
  const OpId op{static_cast<std::uint32_t>(instant)};
  return fmt::format("after op {} ({})", instant, trace.text(trace.op(op).name));
}

std::string where(const RecomputeModel& model, StreamId stream, std::int32_t instant, std::int64_t cost) {
  const Trace& trace = model.trace();
  return fmt::format(
      "{}, ops that take {} must run again{}", after_op(trace, instant), to_text(Nanos{cost}),
      trace.data().streams.size() > 1 ? fmt::format(" on stream {}", trace.data().streams[stream.index()]) : "");
}

std::optional<Bound> knapsack(const BoundQuery& query) {
  if (!query.remat || query.capacity >= ideal_peak(query.trace, query.assume) || !iterations_are_apart(query))
    return std::nullopt;
  const StreamId stream = RecomputeModel::busiest_stream(query.trace);
  const RecomputeModel model{query.trace, query.assume, stream};
  const std::vector<std::int64_t> bounds = knapsack_bounds(model, query.capacity);
  const auto best = std::max_element(bounds.begin(), bounds.end());
  if (best == bounds.end() || *best == 0) return std::nullopt;
  return Bound{.makespan = clock_start(query) + model.work() + Nanos{*best},
               .proof = where(model, stream, static_cast<std::int32_t>(best - bounds.begin()), *best),
               .limited_by = Resource::kRecompute};
}

std::optional<Bound> min_cut(const BoundQuery& query) {
  if (!query.remat || query.capacity >= ideal_peak(query.trace, query.assume)) return std::nullopt;
  const StreamId stream = RecomputeModel::busiest_stream(query.trace);
  const RecomputeModel model{query.trace, query.assume, stream};
  const MinCutPlan plan = min_cut_plan(model, query.capacity);
  if (!plan.feasible && plan.flows == 0) return std::nullopt;  // the bound "working-set" says so
  if (!plan.feasible)
    return Bound{.feasible = false,
                 .proof = fmt::format("{}, the content that is needed later and cannot be recomputed does not fit",
                                      after_op(query.trace, plan.instant))};
  if (plan.bound == 0 || !iterations_are_apart(query)) return std::nullopt;
  std::string proof = where(model, stream, plan.instant, plan.bound);
  if (plan.stretches > 1)
    proof = fmt::format("in {} windows of the step, ops that take {} must run again", plan.stretches,
                        to_text(Nanos{plan.bound}));
  return Bound{.makespan = clock_start(query) + model.work() + Nanos{plan.bound},
               .proof = std::move(proof),
               .limited_by = Resource::kRecompute};
}

const RegisterBound kKnapsack{{.name = "knapsack",
                               .summary = "what must be absent at one instant is run again, at the least cost by bytes",
                               .swap = false,
                               .steady = true,
                               .compute = knapsack}};
const RegisterBound kMinCut{
    {.name = "min-cut",
     .summary =
         "what is absent at one instant is run again with all it depends on: a minimum cut with a price on memory",
     .swap = false,
     .steady = true,
     .compute = min_cut}};

}  // namespace

MinCutPlan min_cut_plan(const RecomputeModel& model, Bytes capacity) {
  const std::vector<Bytes> taken = irreplaceable_bytes(model);
  if (const auto largest = std::max_element(taken.begin(), taken.end()); *largest > capacity) {
    MinCutPlan none;
    none.feasible = false;
    none.instant = static_cast<std::int32_t>(largest - taken.begin());
    return none;
  }
  const std::vector<std::int64_t> promise = knapsack_bounds(model, capacity);
  std::vector<InstantRange> stretches = stretches_of(promise);
  if (stretches.empty()) return {};
  const InstantRange whole{stretches.front().first, stretches.back().last, model.ops(), 0};
  MinCutPlan best = InstantSearch{model, capacity, promise, whole}.run(kParts);
  keep_largest(stretches, model.ops());
  if (stretches.size() == 1 || !best.feasible) return best;
  std::int64_t sum = 0;
  for (const InstantRange& stretch : stretches) {
    const MinCutPlan part = InstantSearch{model, capacity, promise, stretch}.run(kFewParts);
    best.flows += part.flows;
    if (!part.feasible) return part;
    sum += part.bound;
  }
  if (sum > best.bound) best.bound = sum, best.stretches = static_cast<int>(stretches.size());
  return best;
}

std::vector<Bytes> irreplaceable_bytes(const RecomputeModel& model) {
  const auto ops = static_cast<std::size_t>(model.ops());
  std::vector<std::int64_t> change(ops + 2);
  const auto lasts = [](const RootItem& item) {
    return item.made != RecomputeModel::kNever && !item.replaceable && item.needed > item.made;
  };
  for (const RootItem& item : model.items())
    if (lasts(item)) {
      change[static_cast<std::size_t>(std::max(item.made, 0))] += item.bytes;
      change[static_cast<std::size_t>(item.needed)] -= item.bytes;
    }
  std::vector<Bytes> taken(ops + 1);
  std::int64_t lasting = 0;
  for (std::size_t i = 0; i <= ops; ++i) {
    lasting += change[i];
    const auto instant = static_cast<std::int32_t>(i);
    taken[i] = model.taken(instant) + Bytes{lasting};
    for (const VersionId v : model.held(instant))
      if (lasts(model.item(v)) && model.item(v).needed > instant) taken[i] -= Bytes{model.item(v).bytes};
  }
  return taken;
}

std::vector<std::int64_t> knapsack_bounds(const RecomputeModel& model, Bytes capacity) {
  const std::vector<VersionId> order = by_density(model);
  const std::vector<Bytes> irreplaceable = irreplaceable_bytes(model);
  std::vector<std::size_t> rank(model.items().size(), order.size());
  std::vector<std::uint32_t> endings(order.size());
  for (std::size_t r = 0; r < order.size(); ++r) rank[order[r].index()] = r;
  std::iota(endings.begin(), endings.end(), 0u);
  std::sort(endings.begin(), endings.end(), [&](std::uint32_t a, std::uint32_t b) {
    return model.item(order[a]).needed < model.item(order[b]).needed;
  });
  RankedSums absent{order.size()};  // versions that are needed later and may be absent
  std::vector<bool> counted(order.size());
  const auto count = [&](std::size_t r, bool in) {
    if (r >= order.size() || counted[r] == in) return;
    const RootItem& item = model.item(order[r]);
    counted[r] = in;
    absent.add(r, in ? item.bytes : -item.bytes, in ? item.cost : -item.cost);
  };
  std::vector<std::int64_t> bounds(static_cast<std::size_t>(model.ops()));
  auto ending = endings.begin();
  for (std::int32_t i = 0; i < model.ops(); ++i) {
    for (; ending != endings.end() && model.item(order[*ending]).needed <= i; ++ending) count(*ending, false);
    for (const VersionId v : model.held(i)) count(rank[v.index()], false);
    const std::int64_t room = (capacity - irreplaceable[static_cast<std::size_t>(i)]).count();
    if (const std::int64_t excess = absent.total() - room; excess > 0) {
      const RankedSums::Prefix prefix = absent.below(std::min(excess, absent.total()));
      std::int64_t bound = prefix.cost;
      if (prefix.ranks < order.size()) {
        const RootItem& last = model.item(order[prefix.ranks]);
        const std::int64_t part = std::min(excess, absent.total()) - prefix.bytes;
        bound += static_cast<std::int64_t>(static_cast<Int128>(last.cost) * part / last.bytes);
      }
      bounds[static_cast<std::size_t>(i)] = bound;
    }
    for (const VersionId v : model.held(i))
      if (model.item(v).needed > i) count(rank[v.index()], true);
    for (const VersionId v : model.trace().made(OpId{static_cast<std::uint32_t>(i)}))
      if (model.item(v).needed > i) count(rank[v.index()], true);
  }
  return bounds;
}

}  // namespace tidepool
