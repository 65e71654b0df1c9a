#include "policies/planning/search/fluid_shares.hpp"

#include <map>
#include <tuple>

#include "simulator/bounds/fluid.hpp"

namespace tidepool {

std::vector<double> fluid_shares(const Planning& planning) {
  constexpr std::size_t kMostOpsAndGaps = 6'000;  // the solution of a larger linear program takes seconds
  const auto& [trace, circle, gaps, reruns, machine, capacity, _] = planning;
  if (trace.data().streams.size() != 1 || circle.size() + gaps.size() > kMostOpsAndGaps) return {};
  const Absences step = find_absences(trace, true);
  const auto rate = [](const Link& link) { return static_cast<double>(link.rate.count()) / 1e9; };
  const FluidBound fluid = fluid_bound(step,
                                       {.capacity = capacity,
                                        .out_rate = rate(machine.d2h),
                                        .in_rate = rate(machine.h2d),
                                        .remat = false,
                                        .repeats = true},
                                       {});
  if (fluid.copied.size() != step.absences.size()) return {};
  const auto n = static_cast<std::int64_t>(circle.size());
  std::map<std::tuple<std::int64_t, std::int64_t, Bytes>, std::vector<double>> shares_of;  // several if gaps are equal
  for (std::size_t i = 0; i < step.absences.size(); ++i) {
    const Absence& absence = step.absences[i];
    if (absence.due == Absence::kNever || absence.size <= Bytes{}) continue;
    shares_of[{((absence.first - 1) % n + n) % n, absence.due % n, absence.size}].push_back(
        fluid.copied[i] / static_cast<double>(absence.size.count()));
  }
  std::vector<double> shares;
  for (const Gap& gap : gaps) {
    std::vector<double>& like = shares_of[{gap.release, gap.due % n, gap.size}];
    double share = 0;
    if (!like.empty()) share = like.back(), like.pop_back();
    shares.push_back(share + 1e-6 * static_cast<double>(gap.due - gap.release) / static_cast<double>(n));
  }
  return shares;
}

}  // namespace tidepool
