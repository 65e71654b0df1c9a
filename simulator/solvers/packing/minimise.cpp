#include "simulator/solvers/packing/minimise.hpp"

#include <algorithm>
#include <utility>

#include "simulator/solvers/packing/greedy.hpp"
#include "simulator/solvers/packing/minimiser.hpp"
#include "simulator/solvers/packing/search/problem.hpp"

namespace tidepool {
Minimiser::Minimiser(const Instance& instance, const PackingLimits& limits, double effort)
    : instance_{instance},
      limits_{limits},
      effort_{effort},
      end_{limits},
      sections_{instance},
      problem_{reduce(instance, sections_)} {}

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

/// The first layout, which no limit cuts short.
void Minimiser::one_pass() {
  keep(place_in_order(instance_, sections_, in_order(instance_, PackingOrder::kSize), Fit::kFirst));
}

/// Whether so much work has been done that the instance is not easy. It depends on no limit, so that a search with more
/// time or effort begins as one with less.
bool Minimiser::first_part_over() const {
  constexpr std::uint64_t kFirstPart = 30'000'000;
  return work_ > kFirstPart;
}

Layout minimise(const Instance& instance, const PackingLimits& limits, double effort) {
  return Minimiser{instance, limits, effort}.run();
}

}  // namespace tidepool
