#include "simulator/engine/boundary.hpp"

#include <algorithm>
#include <type_traits>

namespace tidepool {

namespace {

/// Calls visit(number) for every time, sum of bytes and count of an iteration.
template <class Visit>
void for_each_cost(Totals& totals, Visit visit) {
  const auto visit_quantity = [&](auto& quantity) {
    std::int64_t number = quantity.count();
    visit(number);
    quantity = std::decay_t<decltype(quantity)>{number};
  };
  for (Nanos* const time : {&totals.makespan, &totals.recompute, &totals.stall.compute, &totals.stall.h2d,
                            &totals.stall.d2h, &totals.stall.memory, &totals.slowdown})
    visit_quantity(*time);
  visit_quantity(totals.swap_out);
  visit_quantity(totals.swap_in);
  visit(totals.recompute_count);
  visit(totals.eviction_count);
}

std::vector<std::int64_t> costs_of(Totals totals) {
  std::vector<std::int64_t> numbers;
  for_each_cost(totals, [&](std::int64_t& number) { numbers.push_back(number); });
  return numbers;
}

/// Whether the states at the boundaries `from` and `to` are equal, except for addresses. The host may be further ahead
/// at `to` if nothing waited for it in between.
bool comes_back(std::span<const Boundary> boundaries, std::size_t from, std::size_t to) {
  const Boundary &earlier = boundaries[from], &later = boundaries[to];
  if (later.host_lead < earlier.host_lead || later.state != earlier.state) return false;
  const auto delayed = [](const Boundary& boundary) { return boundary.host_delayed; };
  const std::span between = boundaries.subspan(from + 1, to - from);
  return later.host_lead == earlier.host_lead || std::none_of(between.begin(), between.end(), delayed);
}

}  // namespace

int cycle_of(std::span<const Boundary> boundaries, std::span<const Totals> iterations) {
  const std::size_t last = boundaries.size() - 1;
  for (std::size_t length = 1; length <= last; ++length) {
    if (!comes_back(boundaries, last - length, last)) continue;
    if (boundaries[last].places == boundaries[last - length].places) return static_cast<int>(length);
    if (2 * length > last || !comes_back(boundaries, last - 2 * length, last - length)) continue;
    const std::span now = iterations.last(length), before = iterations.subspan(last - 2 * length, length);
    if (std::equal(now.begin(), now.end(), before.begin(),
                   [](const Totals& a, const Totals& b) { return costs_of(a) == costs_of(b); }))
      return static_cast<int>(length);
  }
  return 0;
}

int longest_cycle(std::span<const Boundary> boundaries) {
  const std::size_t last = boundaries.size() - 1;
  for (std::size_t from = last / 2; from < last; ++from)
    if (comes_back(boundaries, from, last)) return static_cast<int>(last - from);
  return 0;
}

Totals sum_of(std::span<const Totals> iterations) {
  Totals sum = iterations.back();
  for (const Totals& one : iterations.first(iterations.size() - 1)) {
    const std::vector<std::int64_t> numbers = costs_of(one);
    auto next = numbers.begin();
    for_each_cost(sum, [&](std::int64_t& number) { number += *next++; });
  }
  return sum;
}

Totals mean_of_last(std::span<const Totals> iterations, int cycle) {
  Totals mean = sum_of(iterations.last(static_cast<std::size_t>(cycle)));
  for_each_cost(mean, [&](std::int64_t& number) { number = rounded_mean(number, cycle); });
  return mean;
}

}  // namespace tidepool
