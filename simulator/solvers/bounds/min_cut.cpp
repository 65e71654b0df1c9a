#include "simulator/solvers/bounds/min_cut.hpp"

#include <algorithm>

#include "simulator/solvers/bounds/knapsack.hpp"

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

}  // namespace tidepool
