// No step of one stream, run once or repeated endlessly, is faster than a bound, whatever the policy.
#include <fmt/format.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "simulator/engine/timeline.hpp"
#include "simulator/registry.hpp"
#include "simulator/run.hpp"
#include "simulator/solvers/bounds/bound.hpp"
#include "tests/catch.hpp"
#include "tests/effort.hpp"
#include "tests/machines.hpp"
#include "tests/quick_spec.hpp"
#include "tests/random_trace.hpp"

namespace tidepool::one_stream_bounds_test {

using tidepool::tests::kOptimised;
using tidepool::tests::Random;

namespace {

/// A step of a few ops on one stream, whose weights stay from one iteration to the next. Ops read live buffers, also
/// through views, make new ones, update or overwrite live ones, or use temporary ones. There may be a batch, which is
/// new in each iteration. Other buffers end after a use or outlive the step.
class RepeatedStep {
 public:
  explicit RepeatedStep(std::uint64_t seed) : random_{seed}, even_{random_.chance(50)} {}

  Trace make() {
    const std::size_t ops = 4 + random_.below(9), weights = random_.below(4);
    const bool has_batch = random_.chance(30);
    for (std::size_t i = 0; i < weights + (has_batch ? 1 : 0); ++i) live_.push_back(build_.existing({.size = size()}));
    const std::size_t existing = live_.size();
    for (std::size_t i = 0; i < ops; ++i) {
      if (live_.empty() || random_.chance(25))
        needs_room();
      else
        use();
    }
    while (live_.size() > existing) {
      if (random_.chance(80)) run({{live_.back()}});
      if (random_.chance(70)) build_.free(live_.back());
      live_.pop_back();
      if (random_.chance(40)) needs_room();
    }
    if (has_batch) build_.free(live_.back());
    return build_.finish();
  }

 private:
  Bytes size() { return even_ ? 4'000_B : Bytes{static_cast<std::int64_t>(1 + random_.below(8)) * 1'000}; }
  BufferId pick() { return live_[random_.below(live_.size())]; }

  void use() {
    std::vector<TraceBuilder::Touch> touches;
    for (std::size_t n = random_.below(3); n > 0; --n) touches.push_back({pick()});
    const std::size_t roll = random_.below(10);
    if (roll < 4)
      for (std::size_t n = random_.chance(15) ? 2 : 1; n > 0; --n) {
        live_.push_back(build_.alloc({.size = size()}));
        touches.push_back({live_.back(), Access::kWrite});
      }
    else if (roll < 7)
      touches.push_back({pick(), random_.chance(50) ? Access::kReadWrite : Access::kWrite});
    else
      touches.push_back({pick()});
    run(touches);
    if (random_.chance(10)) build_.run({.duration = 0_ns}, {{pick(), Access::kView}});
  }

  void needs_room() {
    const BufferId room = build_.alloc({.size = size() + (random_.chance(50) ? size() : 0_B)});
    run({{room, Access::kWrite}});
    build_.free(room);
  }

  void run(const std::vector<TraceBuilder::Touch>& touches) {
    const std::size_t longest = random_.chance(80) ? 1'000 : 20'000;
    build_.run({.duration = Nanos{static_cast<std::int64_t>(random_.below(longest))}}, touches);
  }

  Random random_;
  bool even_;  // all buffers but temporary ones have the same size
  TraceBuilder build_;
  std::vector<BufferId> live_;
};

/// Machines whose links are fast or slow in comparison with ops, in either direction; one whose copies slow each other
/// down; one whose copies are cut; and one with storage beyond the host.
std::vector<Machine> machines() {
  constexpr BytesPerSecond kFast{50'000'000'000}, kSlow{200'000'000};
  const auto make = [](BytesPerSecond out, BytesPerSecond in) {
    Machine machine = tests::byte_per_nano();
    machine.d2h.rate = out, machine.h2d.rate = in;
    return machine;
  };
  const BytesPerSecond even = tests::byte_per_nano().h2d.rate;
  std::vector<Machine> all{make(even, even),   make(even * 8, even * 8), make(kSlow / 2, kSlow),
                           make(kSlow, kFast), make(kFast, kSlow),       tests::uneven()};
  Machine duplex = make(even, even);
  duplex.d2h.duplex_ppm = 600'000, duplex.h2d.duplex_ppm = 700'000;
  Machine pieces = make(even, even);
  pieces.chunk = 1'500_B, pieces.submit = 50_ns;
  Machine tiers = make(even, even);
  tiers.host.capacity = 10'000_B;
  tiers.storage = {.write = {even / 2, 100_ns}, .read = {even * 2, 100_ns}, .capacity = 1_GiB};
  all.insert(all.end(), {duplex, pieces, tiers});
  return all;
}

/// The time of the step, in the steady state or alone; nothing if the run does not end well, or does not settle.
std::optional<Nanos> time_of(const Trace& trace, const RunSpec& spec) {
  const Result run = simulate(trace, spec);
  if (run.outcome != Outcome::kOk || !run.cycle.settled) return std::nullopt;
  return run.totals.makespan;
}

/// Compares the time of every policy with every bound on it, over the steps of the seeds first to first + count - 1.
void check_bounds(std::uint64_t first, std::uint64_t count, bool steady) {
  // By bound: the number of runs that are compared with it; and how many of these take less than 5 % longer than the
  // bound, while the bound is above the critical path.
  std::map<std::string, int> compared, close;
  std::vector<std::string> policies{"tide(with=swap,effort=20,least=1B)", "tide(with=order+swap,effort=1,least=1B)"};
  for (const PolicyInfo* policy : all_policies()) policies.push_back(tests::quick_spec(*policy));
  const std::vector<Machine> all = machines();
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    const Trace trace = RepeatedStep{seed}.make();
    for (std::size_t m = seed % 3; m < all.size(); m += 3)
      for (const int percent : {40, 60, 80}) {
        std::map<std::string, std::vector<Bound>> known;  // by the allowed actions
        for (const std::string& policy : policies) {
          const RunSpec spec{.pool = "ideal",
                             .policy = policy,
                             .capacity = trace.ideal_peak() * percent / 100,
                             .machine = all[m],
                             .steady = steady,
                             .iterations = steady ? 50 : 1};
          const std::optional<Nanos> time = time_of(trace, spec);
          if (!time) continue;
          const BoundQuery query = query_of(trace, spec);
          const auto [bounds, is_new] = known.try_emplace(with_text(query.swap, query.remat, query.order));
          if (is_new) bounds->second = compute_bounds(query, BoundEffort::kAll);
          for (const Bound& bound : bounds->second) {
            INFO(fmt::format("seed {} machine {} at {} %, {}: {} says {} ({})", seed, m, percent, policy, bound.name,
                             to_text(bound.makespan), bound.proof));
            REQUIRE(bound.feasible);
            REQUIRE(bound.makespan <= *time);
            ++compared[bound.name];
            close[bound.name] +=
                bound.makespan > bounds->second.front().makespan && time->count() * 100 < 105 * bound.makespan.count();
          }
        }
      }
  }
  for (const auto& [name, times] : compared) {
    fmt::print("{} {}: {} compared, {} of them close\n", steady ? "repeated" : "once", name, times, close[name]);
    // order-swap may have no close run with few seeds; tests/unit/simulator/ordered_plan_test.cpp has a case for it.
    if (kOptimised && name != "critical-path" && name != "order-swap") CHECK(close[name] > 3);
  }
  CHECK(compared.size() == 14);
}

}  // namespace

TEST_CASE("no policy repeats a step in a mean time below its bounds") {
  // Every error in a bound that was found so far shows on one of the 60 steps, except one, which has a test in
  // tests/unit.
  check_bounds(209, kOptimised ? 60 : 12, true);
}

TEST_CASE("no policy runs a step of one stream in less than its bounds") {
  check_bounds(1, kOptimised ? 20 : 5, false);
}

}  // namespace tidepool::one_stream_bounds_test
