#include "simulator/solvers/robustness.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <map>
#include <string_view>
#include <utility>

#include "simulator/run.hpp"
#include "simulator/solvers/packing/search/random_numbers.hpp"
#include "traces/summary.hpp"

namespace tidepool {
namespace {

constexpr int kNoisy = 4;                  // scenarios with random durations and rates
constexpr std::int64_t kFull = 1'000'000;  // ppm

std::int64_t millionths(double share) { return std::llround(share * kFull); }

double ratio_of(Nanos time, Nanos unlimited) {
  return static_cast<double>(time.count()) / static_cast<double>(std::max<std::int64_t>(unlimited.count(), 1));
}

RatioBetween least_and_largest(const std::vector<double>& ratios) {
  if (ratios.empty()) return {};
  const auto [least, largest] = std::minmax_element(ratios.begin(), ratios.end());
  return std::pair{*least, *largest};
}

/// Other times that the ops of a step may have, if a model estimated their times.
class WithinError {
 public:
  explicit WithinError(const Trace& step) : by_{std::strtod(error_of_times(step).c_str(), nullptr) / 100} {
    RandomNumbers numbers{1};
    for (auto& factors : by_name_)
      for (const Op& op : step.ops())
        if (const auto [found, is_new] = factors.try_emplace(std::string{step.text(op.name)}, 1); is_new)
          found->second += by_ * (2 * numbers.next() - 1);
  }
  std::size_t count() const { return by_ > 0 && by_ < 1 ? 3 + by_name_.size() : 0; }

  /// The step, or a changed one, as it is (0), with faster (1) and slower (2) ops, or with a share for each name.
  Trace other(const Trace& trace, std::size_t i) const {
    TraceData data = trace.data();
    for (Op& op : data.ops)
      if (op.kind != OpKind::kCopy)
        op.duration = Nanos{std::llround(static_cast<double>(op.duration.count()) * factor(trace.text(op.name), i))};
    return Trace{std::move(data)};
  }

 private:
  double factor(std::string_view name, std::size_t i) const {
    if (i < 3) return 1 + by_ * (i == 0 ? 0 : i == 1 ? -1 : 1);
    const auto found = by_name_[i - 3].find(name);
    return found == by_name_[i - 3].end() ? 1 : found->second;
  }

  double by_;
  std::array<std::map<std::string, double, std::less<>>, kNoisy> by_name_;
};

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
    costs.push_back({makespan, ratio_of(makespan, unlimited)});
  }
  return costs;
}

RatioBetween ratios_of_times(const Trace& trace, const RunSpec& spec, const Plan& plan) {
  const WithinError within{trace};
  std::vector<double> ratios;
  for (std::size_t i = 0; i < within.count(); ++i) {
    const Trace other = within.other(trace, i);
    const Nanos unlimited = baseline_time(other, spec);
    ratios.push_back(ratio_of(replay(other, spec, plan).makespan, unlimited));
  }
  return least_and_largest(ratios);
}

RatioBetween ratios_of_times(const Trace& step, const Trace& changed, Nanos launch) {
  const WithinError within{step};
  std::vector<double> ratios;
  for (std::size_t i = 0; i < within.count(); ++i)
    ratios.push_back(ratio_of(baseline_time(within.other(changed, i), launch),  //
                              baseline_time(within.other(step, i), launch)));
  return least_and_largest(ratios);
}

std::string to_text(const RatioBetween& between, int digits) {
  if (!between) return "";
  return fmt::format(" ({:.{}f} to {:.{}f})", (between->first - 1) * 100, digits, (between->second - 1) * 100, digits);
}

std::size_t worst_of(const std::vector<ScenarioCost>& costs) {
  const auto less = [](const ScenarioCost& a, const ScenarioCost& b) { return a.ratio < b.ratio; };
  return static_cast<std::size_t>(std::max_element(costs.begin(), costs.end(), less) - costs.begin());
}

}  // namespace tidepool
