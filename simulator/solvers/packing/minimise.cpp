#include "simulator/solvers/packing/minimise.hpp"

#include <algorithm>
#include <utility>

#include "simulator/solvers/packing/bounds/bounds.hpp"
#include "simulator/solvers/packing/greedy.hpp"
#include "simulator/solvers/packing/minimiser.hpp"
#include "simulator/solvers/packing/orders.hpp"

namespace tidepool {
namespace {

constexpr std::int64_t kFirstPart = 8, kPartOfOthers = 4;  // divisors of the time limit; kFirstPart also of the work

PackingLimits first_part(PackingLimits limits) {
  if (limits.time) limits.time = *limits.time / kFirstPart;
  return limits;
}

}  // namespace

Minimiser::Minimiser(const Instance& instance, const PackingLimits& limits, double effort,
                     std::span<const std::unique_ptr<Planner>> others)
    : instance_{instance},
      limits_{limits},
      effort_{effort},
      others_{others},
      end_{limits},
      early_{first_part(limits)},
      sections_{instance},
      problem_{reduce(instance, sections_)} {
  for (const SectionRange range : problem_.ranges) cells_ += range.last - range.first;
}

Layout Minimiser::run() {
  const HeightBound bound = height_bound(problem_);
  proved_ = bound.height;
  layout_.proof = bound.proof;
  for (const Item& item : instance_.items)  // items of no bytes are not in the problem, but their offsets count
    if (item.size == Bytes{} && item.fixed && item.fixed->count() > proved_ * problem_.unit) {
      proved_ = (item.fixed->count() + problem_.unit - 1) / problem_.unit;
      layout_.proof = "fixed";
    }
  low_ = std::max(proved_, limits_.enough.count() / problem_.unit);
  one_pass();
  if (high_ > low_ && !end_.reached()) search();
  ask_others();
  layout_.lower_bound = std::min(Bytes{proved_ * problem_.unit}, layout_.height);
  if (layout_.height <= limits_.capacity)
    layout_.outcome = Outcome::kOk;
  else
    layout_.outcome = layout_.lower_bound > limits_.capacity ? Outcome::kInfeasible : Outcome::kTimeLimit;
  return std::move(layout_);
}

void Minimiser::keep(std::vector<Bytes> offsets) {
  const Bytes height = height_of(instance_, offsets);
  if (!layout_.offsets.empty() && height >= layout_.height) return;
  layout_.offsets = std::move(offsets);
  layout_.height = height;
  high_ = (height.count() + problem_.unit - 1) / problem_.unit;
}

void Minimiser::one_pass() {
  for (const PackingOrder order : kPackingOrders) {
    const std::vector<std::uint32_t> sorted = in_order(instance_, order);
    for (const Fit fit : {Fit::kFirst, Fit::kBest}) {
      keep(place_in_order(instance_, sections_, sorted, fit));
      if (high_ <= low_ || end_.reached()) return;
    }
  }
}

/// Runs the other planners, at the first call only.
void Minimiser::ask_others() {
  for (const std::unique_ptr<Planner>& other : std::exchange(others_, {})) {
    if (high_ <= low_ || end_.reached()) return;
    PackingLimits limits = limits_;
    if (limits.time) limits.time = *limits.time / kPartOfOthers;
    keep(other->plan(instance_, limits).offsets);
  }
}

/// Whether the search has used its first part, an eighth of its time or work. An easy instance ends before that, and
/// needs no other planner or search.
bool Minimiser::first_part_over() const {
  return limits_.time ? early_.reached() : static_cast<double>(work_) > most_work() / kFirstPart;
}

void Minimiser::ask_others_in_time() {
  if (first_part_over()) ask_others();
}

Layout minimise(const Instance& instance, const PackingLimits& limits, double effort,
                std::span<const std::unique_ptr<Planner>> others) {
  return Minimiser{instance, limits, effort, others}.run();
}

}  // namespace tidepool
