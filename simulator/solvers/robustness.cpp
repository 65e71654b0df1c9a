#include "simulator/solvers/robustness.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <utility>

#include "simulator/run.hpp"
#include "simulator/solvers/packing/search/random_numbers.hpp"
#include "traces/summary.hpp"

namespace tidepool {
namespace {

constexpr int kNoisy = 4;                  // scenarios with random durations and rates
constexpr std::int64_t kFull = 1'000'000;  // ppm

std::int64_t millionths(double share) { return std::llround(share * kFull); }

}  // namespace

Link at_rate(Link link, std::int64_t rate_ppm) {
  const auto scaled = [](std::int64_t count, std::int64_t by, std::int64_t of) {
    return static_cast<std::int64_t>(static_cast<Int128>(count) * by / of);
  };
  link.rate = BytesPerSecond{std::max<std::int64_t>(scaled(link.rate.count(), rate_ppm, kFull), 1)};
  for (TimedSize& timed : link.times)
    timed.time = link.latency + Nanos{scaled((timed.time - link.latency).count(), kFull, rate_ppm)};
  return link;
}

Machine with_slower_links(Machine machine, double by) {
  for (Link* const link : {&machine.h2d, &machine.d2h, &machine.storage.write, &machine.storage.read})
    *link = at_rate(std::move(*link), millionths(1 - by));
  return machine;
}

std::vector<Scenario> scenarios_around(const Trace& trace, const RunSpec& spec, double by, std::uint64_t seed) {
  std::vector<Scenario> scenarios;
  const Nanos unlimited = baseline_time(trace, spec.machine.launch);
  scenarios.push_back({"as planned", trace, spec, unlimited});
  RunSpec slower = spec;
  slower.machine = with_slower_links(spec.machine, by);
  scenarios.push_back({"slower links", trace, std::move(slower), unlimited});
  RandomNumbers numbers{seed};
  for (int noisy = 1; noisy <= kNoisy; ++noisy) {
    TraceData data = trace.data();
    for (Op& op : data.ops)
      op.duration = Nanos{std::llround(static_cast<double>(op.duration.count()) * (1 + by * (2 * numbers.next() - 1)))};
    RunSpec other = spec;
    Machine& machine = other.machine;
    for (Link* const link : {&machine.h2d, &machine.d2h, &machine.storage.write, &machine.storage.read})
      *link = at_rate(std::move(*link), millionths(1 - by * numbers.next()));
    Trace changed{std::move(data)};
    const Nanos without_limit = baseline_time(changed, spec.machine.launch);
    scenarios.push_back({fmt::format("noise {}", noisy), std::move(changed), std::move(other), without_limit});
  }
  return scenarios;
}

std::vector<ScenarioCost> costs_in(const std::vector<Scenario>& scenarios, const Plan& plan) {
  std::vector<ScenarioCost> costs;
  for (const auto& [name, trace, spec, unlimited] : scenarios) {
    const Nanos makespan = replay(trace, spec, plan).makespan;
    const auto least = static_cast<double>(std::max<std::int64_t>(unlimited.count(), 1));
    costs.push_back({makespan, static_cast<double>(makespan.count()) / least});
  }
  return costs;
}

std::optional<std::pair<double, double>> ratios_of_times(const Trace& trace, const RunSpec& spec, const Plan& plan) {
  const double by = std::strtod(error_of_times(trace).c_str(), nullptr) / 100;
  if (!(by > 0 && by < 1)) return {};
  std::vector<Scenario> scenarios;
  const auto add = [&](const auto& factor_of) {
    TraceData data = trace.data();
    for (Op& op : data.ops) op.duration = Nanos{std::llround(static_cast<double>(op.duration.count()) * factor_of(op))};
    Trace changed{std::move(data)};
    const Nanos unlimited = baseline_time(changed, spec);
    scenarios.push_back({{}, std::move(changed), spec, unlimited});
  };
  for (const double factor : {1.0, 1 - by, 1 + by}) add([&](const Op&) { return factor; });
  RandomNumbers numbers{1};
  for (int noisy = 1; noisy <= kNoisy; ++noisy) {
    std::map<StringId, double> factors;
    add([&](const Op& op) {
      const auto [found, is_new] = factors.try_emplace(op.name, 0);
      if (is_new) found->second = 1 + by * (2 * numbers.next() - 1);
      return found->second;
    });
  }
  const std::vector<ScenarioCost> costs = costs_in(scenarios, plan);
  const auto less = [](const ScenarioCost& a, const ScenarioCost& b) { return a.ratio < b.ratio; };
  const auto [least, largest] = std::minmax_element(costs.begin(), costs.end(), less);
  return std::pair{least->ratio, largest->ratio};
}

std::size_t worst_of(const std::vector<ScenarioCost>& costs) {
  const auto less = [](const ScenarioCost& a, const ScenarioCost& b) { return a.ratio < b.ratio; };
  return static_cast<std::size_t>(std::max_element(costs.begin(), costs.end(), less) - costs.begin());
}

}  // namespace tidepool
