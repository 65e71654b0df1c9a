// Invariants of runs that copy, on every device model: random drafts of copies with lru-swap, on random traces.
#include <fmt/format.h>

#include <algorithm>

#include "simulator/engine/timeline.hpp"
#include "simulator/run.hpp"
#include "tests/catch.hpp"
#include "tests/effort.hpp"
#include "tests/random_trace.hpp"
#include "tests/scripted_policy.hpp"
#include "traces/builder.hpp"
#include "validator/host/host_backend.hpp"

namespace tidepool::device_model_test {

using tests::Random;

namespace {

constexpr int kSeeds = tests::kOptimised ? 30 : 4;

Machine simple() {
  Machine machine;
  machine.name = "simple";
  machine.capacity = kNoLimit;
  machine.h2d = {BytesPerSecond{100'000'000}, 2_us};
  machine.d2h = {BytesPerSecond{80'000'000}, 3_us};
  return machine;
}

/// Copies slow each other and kernels down. They are cut into pieces, submitted by the host, and go to pinned blocks.
Machine full() {
  Machine machine = simple();
  machine.name = "full";
  machine.h2d.duplex_ppm = 450'000, machine.d2h.duplex_ppm = 950'000;
  machine.h2d.times = {{1_KiB, 15_us}, {8_KiB, 95_us}};
  machine.h2d.slowdown_ppm = 30'000, machine.d2h.slowdown_ppm = 70'000;
  machine.chunk = 3000_B;
  machine.submit = 6_us, machine.launch = 2_us;
  machine.host = {.capacity = 1_GiB, .powers_of_two = true, .pin_latency = 50_us, .pin_rate = BytesPerSecond{1 << 30}};
  return machine;
}

/// Little memory on the host, and storage beyond it.
Machine tiered(bool disturbed) {
  Machine machine = disturbed ? full() : simple();
  machine.name = disturbed ? "tiered and full" : "tiered";
  machine.host.capacity = 32_KiB;
  machine.storage = {
      .write = {BytesPerSecond{20'000'000}, 5_us}, .read = {BytesPerSecond{30'000'000}, 4_us}, .capacity = 1_GiB};
  return machine;
}

/// Drafts up to two random copies, out or in, before each op.
std::vector<Action> random_copies(const Trace& trace, std::uint64_t seed) {
  Random random{seed};
  std::vector<Action> draft;
  for (std::size_t op = 0; op < trace.ops().size(); ++op)
    for (std::size_t n = random.below(3); n > 0; --n) {
      const VersionId v{random.below(trace.versions().size())};
      if (trace.root(v) != v) continue;
      draft.push_back({random.chance(60) ? Verb::kSwapOut : Verb::kSwapIn, OpId{op}, v.value(), {}, {}});
    }
  return draft;
}

Bytes share_of_peak(const Trace& trace, double share) {
  return Bytes{static_cast<std::int64_t>(share * static_cast<double>(trace.ideal_peak().count()))};
}

/// Runs the draft for a seed; sets spec.policy. Where the draft leaves too little room, lru-swap makes more.
Result run_draft(const Trace& trace, RunSpec& spec, std::uint64_t seed) {
  spec.policy = "scripted+lru-swap";
  tests::script() = random_copies(trace, seed);
  Result result = simulate(trace, spec, true);
  tests::script().clear();
  return result;
}

/// A random step on one compute stream.
Trace one_stream(std::uint64_t seed, int layers) {
  Random random{seed};
  TraceBuilder build;
  const auto size = [&] { return Bytes{static_cast<std::int64_t>(1 + random.below(20'000))}; };
  const auto op = [&] { return Op{.duration = Nanos{static_cast<std::int64_t>(1 + random.below(200'000))}}; };
  std::vector<BufferId> kept{build.existing({.size = size()})};
  for (int i = 0; i < layers; ++i) {
    const BufferId made = build.alloc({.size = size()});
    const BufferId earlier = kept[random.below(kept.size())];
    build.run(op(), {{earlier}, {kept.back()}, {made, Access::kWrite}});
    kept.push_back(made);
  }
  while (kept.size() > 1) {
    const BufferId earlier = kept[random.below(kept.size())];
    build.run(op(), {{kept.back()}, {earlier}});
    build.free(kept.back());
    kept.pop_back();
  }
  return build.finish();
}

/// An address range and the time in which it was in use: from the begin of the first op or copy that touched it to the
/// end of the last one.
struct Occupation {
  Bytes first, last;
  Nanos begin, end;
};

/// The address ranges that a plan on one stream uses and gives up again. The times are those of the timeline.
std::vector<Occupation> occupations(const Trace& trace, const Machine& machine, const Plan& plan) {
  std::vector<VersionState> states;
  Timeline timeline{trace, machine, {}, states};
  std::vector<Occupation> all, open(trace.versions().size());
  constexpr Nanos kNotYet{-1};
  const auto touch = [&](VersionId v, Nanos begin, Nanos end) {
    Occupation& use = open[v.index()];
    if (use.begin == kNotYet) use.begin = begin;
    use.end = std::max(use.end, end);
  };
  for (const Action& action : plan.actions) {
    timeline.apply(action);
    const VersionId v{action.subject};
    switch (action.verb) {
      case Verb::kAlloc:
      case Verb::kSwapIn:
        open[v.index()] = {action.offset, action.offset + trace.size(v), kNotYet, Nanos{}};
        if (action.verb == Verb::kSwapIn)
          touch(v, states[v.index()].ready - machine.h2d.time(trace.size(v)), states[v.index()].ready);
        break;
      case Verb::kSwapOut:
        touch(v, states[v.index()].host_ready - machine.d2h.time(trace.size(v)), states[v.index()].host_ready);
        break;
      case Verb::kRun: {
        const Nanos end = timeline.done(StreamId{std::size_t{0}}), begin = end - trace.op(OpId{v.value()}).duration;
        for (const Use& use : trace.uses(OpId{v.value()})) touch(use.in.valid() ? use.in : use.out, begin, end);
        break;
      }
      default:  // a drop or free; content that is only on the host has no address range
        if (open[v.index()].begin != kNotYet) all.push_back(open[v.index()]);
        open[v.index()].begin = kNotYet;
        break;
    }
  }
  return all;
}

}  // namespace

TEST_CASE("drafts of random copies keep every invariant on every device model") {
  int completed = 0;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const Trace trace = tests::random_trace(seed, 60 + static_cast<int>(seed) * 10);
    for (const Machine& machine : {simple(), full(), tiered(false), tiered(true)})
      for (const double share : {0.4, 0.7, 1.0, 2.0})
        for (const int iterations : {1, 3}) {
          RunSpec spec{.capacity = share_of_peak(trace, share), .machine = machine, .iterations = iterations};
          INFO(fmt::format("seed {} machine {} capacity {}x, {} iterations", seed, machine.name, share, iterations));
          const Result result = run_draft(trace, spec, seed);
          REQUIRE(result.outcome != Outcome::kError);
          CHECK(run_draft(trace, spec, seed).realised == result.realised);
          if (result.outcome != Outcome::kOk) continue;
          ++completed;
          CHECK(replay(trace, spec, result.realised) == result.totals);
          CHECK(result.totals.footprint <= spec.capacity);
          const HostReport report = execute_on_host(trace, result.realised, {.threads = false, .arena = 1_MiB});
          INFO(report.message);
          CHECK(report.outcome == HostOutcome::kOk);
          CHECK(report.peak == result.totals.peak);
        }
  }
  CHECK(completed > 0);
}

TEST_CASE("where copies do not disturb each other, the model of shared links gives the times of two queues") {
  Machine queues = simple(), links = simple();
  links.chunk = 1_GiB;  // so times come from Links, but no copy is large enough to be cut
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const Trace trace = tests::random_trace(seed, 150);
    for (const double share : {0.4, 0.7, 1.5}) {
      INFO(fmt::format("seed {} capacity {}x", seed, share));
      RunSpec spec{.capacity = share_of_peak(trace, share), .machine = queues, .iterations = 2};
      const Result result = run_draft(trace, spec, seed);
      if (result.outcome != Outcome::kOk) continue;
      spec.machine = links;
      CHECK(replay(trace, spec, result.realised) == result.totals);
    }
  }
}

TEST_CASE("a link that both directions share is never faster") {
  Machine alone = simple();
  alone.d2h.rate = alone.h2d.rate;  // 10 ns for a byte: no rounding
  Machine shared = alone;
  shared.h2d.duplex_ppm = 710'000, shared.d2h.duplex_ppm = 710'000;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const Trace trace = one_stream(seed, 40);
    RunSpec spec{.capacity = share_of_peak(trace, 0.5), .machine = alone};
    const Result result = run_draft(trace, spec, seed);
    REQUIRE(result.outcome == Outcome::kOk);
    spec.machine = shared;
    const Totals slower = replay(trace, spec, result.realised);
    CHECK(slower.makespan >= result.totals.makespan);
    // In the worst case, every copy has 71 % of the rate all the time.
    for (Link* link : {&spec.machine.h2d, &spec.machine.d2h})
      link->duplex_ppm = 1'000'000, link->rate = BytesPerSecond{link->rate.count() * 71 / 100};
    CHECK(slower.makespan <= replay(trace, spec, result.realised).makespan);
  }
}

TEST_CASE("no two buffers are ever in the same place at the same time") {
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const Trace trace = one_stream(seed, 40);
    for (const double share : {0.4, 0.6, 0.9}) {
      INFO(fmt::format("seed {} capacity {}x", seed, share));
      RunSpec spec{.capacity = share_of_peak(trace, share), .machine = simple()};
      const Result result = run_draft(trace, spec, seed);
      if (result.outcome != Outcome::kOk) continue;
      const std::vector<Occupation> all = occupations(trace, spec.machine, result.realised);
      REQUIRE(all.size() >= 40);
      int overlaps = 0;
      for (std::size_t i = 0; i < all.size(); ++i) {
        CHECK(all[i].last <= spec.capacity);
        for (std::size_t j = 0; j < i; ++j)
          overlaps += all[i].first < all[j].last && all[j].first < all[i].last && all[i].begin < all[j].end &&
                      all[j].begin < all[i].end;
      }
      CHECK(overlaps == 0);
    }
  }
}

TEST_CASE("freeing a place before its copy to the host ends corrupts bytes that a check finds, or is refused") {
  const Trace trace = one_stream(5, 30);
  const RunSpec spec{.policy = "lru-swap", .capacity = share_of_peak(trace, 0.5), .machine = simple()};
  const Result result = simulate(trace, spec, true);
  REQUIRE(result.outcome == Outcome::kOk);
  // The executor may free memory before its copy out has ended: no task waits for copies out, and they are late.
  HostOptions options{.arena = 1_MiB};
  options.faults.late_copies = 5_ms;
  CHECK(execute_on_host(trace, result.realised, options).outcome == HostOutcome::kOk);
  options.faults.ignore_waits_on = Verb::kSwapOut;
  HostOutcome outcome = HostOutcome::kOk;
  for (const Nanos late : {5_ms, 50_ms, 500_ms, 2'000_ms}) {  // on a busy machine, 5 ms may not be late enough
    options.faults.late_copies = late;
    outcome = execute_on_host(trace, result.realised, options).outcome;
    if (outcome == HostOutcome::kCorrupt) break;
  }
  CHECK(outcome == HostOutcome::kCorrupt);
  // The plan frees the place before it copies.
  Plan mutant = result.realised;
  const auto out = std::find_if(mutant.actions.begin(), mutant.actions.end(),
                                [](const Action& action) { return action.verb == Verb::kSwapOut; });
  const auto drop = std::find_if(out, mutant.actions.end(), [&](const Action& action) {
    return action.verb == Verb::kDrop && action.subject == out->subject;
  });
  REQUIRE(drop != mutant.actions.end());
  std::swap(*out, *drop);
  CHECK_THROWS_WITH(replay(trace, spec, mutant),
                    ContainsSubstring("swap out version ") && ContainsSubstring(": it is not there"));
  CHECK_THROWS_WITH(execute_on_host(trace, mutant), ContainsSubstring(": it has no place to be copied from"));
}

}  // namespace tidepool::device_model_test
