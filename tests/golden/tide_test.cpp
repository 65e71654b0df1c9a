// tide on steps recorded by the authors of AutoSwap and G10.
#include <fmt/format.h>

#include <optional>
#include <string>

#include "simulator/run.hpp"
#include "simulator/solvers/bounds/bound.hpp"
#include "tests/catch.hpp"
#include "tests/effort.hpp"
#include "tests/paths.hpp"
#include "tests/shared_data.hpp"
#include "traces/import/importer.hpp"
#include "traces/iteration.hpp"
#include "traces/synthetic/models.hpp"

namespace tidepool::tide_test {

using tidepool::tests::optimised;
using tidepool::tests::shared_data;

namespace {

/// One case: G10's BERT with a batch size and a memory size.
struct BertPoint {
  int batch, gibibytes;
  double bound;  ///< least time of an iteration: in s, or as a multiple of the time without limit
};

/// The result of the last of four iterations on G10's machine. The pool only counts bytes. None if the trace is missing
/// or the build is not optimised.
std::optional<Result> run_bert(const BertPoint& point, const std::string& policy) {
  const auto path = shared_data(fmt::format("g10/bert{}_kernels.config.gz", point.batch));
  if (!path || !optimised()) return {};
  UNSCOPED_INFO(fmt::format("BERT-{} at {} GiB", point.batch, point.gibibytes));
  const RunSpec spec{.pool = "ideal",
                     .policy = policy,
                     .capacity = 1_GiB * point.gibibytes,
                     .machine = find_machine("g10-a100"),
                     .iterations = 4};
  Result result = simulate(load_trace(*path), spec);
  CHECK(result.outcome == Outcome::kOk);
  return result;
}

}  // namespace

TEST_CASE("tide loses no time on VGG at 280 MiB, also if blocks that the log does not name take a part of it") {
  const std::optional<std::string> path = shared_data("singa/vec_block_fresh_vgg.csv.gz");
  if (!path || !optimised()) return;
  const Trace step = one_iteration(load_trace(*path), 1);
  for (const Bytes unnamed : {0_B, 13'763'052_B}) {
    const RunSpec spec{.pool = "ideal",
                       .policy = "tide(with=swap,effort=1000)",
                       .capacity = 280_MiB - unnamed,
                       .machine = find_machine("titan-x-pcie3"),
                       .iterations = 5};
    const Result result = simulate(step, spec);
    CHECK(result.outcome == Outcome::kOk);
    CHECK(result.totals.stall.compute == 0_ns);
    CHECK(result.totals.makespan == result.baseline);
  }
}

TEST_CASE("on G10's BERT, tide is at most 0.2 % above the swap bound that makes every copy anew") {
  const auto in_seconds = [](Nanos time) { return static_cast<double>(time.count()) / 1e9; };
  for (const BertPoint& point :
       {BertPoint{256, 40, 7.285}, BertPoint{256, 30, 7.285 + 0.379}, BertPoint{256, 20, 7.285 + 1.014},
        BertPoint{512, 40, 9.833 + 2.192}, BertPoint{512, 30, 9.833 + 2.827}, BertPoint{512, 20, 9.833 + 3.461}})
    // tide does not copy content again that the host has already, so the step may take less time than the bound.
    if (const std::optional<Result> result = run_bert(point, "tide(with=swap,effort=64)"))
      CHECK(in_seconds(result->totals.makespan) <= point.bound * 1.002 + 0.0005);
}

TEST_CASE("tide swaps within 0.4 % of the bound on G10's BERT with a batch of 512") {
  struct Line {
    int gibibytes;
    Nanos swap_fluid;  // the bound `swap-fluid` on the repeated step
  };
  for (const Line& line : {Line{40, 9'990'649'665_ns}, Line{30, 10'625'542'420_ns}, Line{20, 11'260'435'178_ns}})
    if (const std::optional<Result> result = run_bert({512, line.gibibytes, 0}, "tide(with=swap)"))
      CHECK(static_cast<double>(result->totals.makespan.count()) <=
            1.004 * static_cast<double>(line.swap_fluid.count()));
}

TEST_CASE("on G10's BERT, tide swaps within 0.6 % of the bound that copies no content that the host has already") {
  struct Line {
    int batch, gibibytes;
  };
  for (const Line& line : {Line{256, 20}, Line{512, 40}, Line{512, 30}, Line{512, 20}}) {
    const auto path = shared_data(fmt::format("g10/bert{}_kernels.config.gz", line.batch));
    if (!path || !optimised()) return;
    INFO(fmt::format("BERT-{} at {} GiB", line.batch, line.gibibytes));
    const Trace trace = load_trace(*path);
    const RunSpec spec{.pool = "ideal",
                       .policy = "tide(with=swap,effort=200)",
                       .capacity = 1_GiB * line.gibibytes,
                       .machine = find_machine("g10-a100"),
                       .iterations = 3};
    const Result result = simulate(trace, spec);
    CHECK(result.outcome == Outcome::kOk);
    const std::optional<Bound> bound =
        best_bound({.trace = trace, .machine = spec.machine, .capacity = spec.capacity, .swap = true, .steady = true});
    REQUIRE(bound);
    CHECK(static_cast<double>(result.totals.makespan.count()) <= 1.006 * static_cast<double>(bound->makespan.count()));
  }
}

TEST_CASE("tide is within 2 % of the bound on swapping and recomputing on G10's BERT") {
  for (const BertPoint& point : {BertPoint{256, 40, 1.0}, BertPoint{256, 30, 1.0}, BertPoint{256, 20, 1.0},
                                 BertPoint{512, 40, 1.00002}, BertPoint{512, 30, 1.00009}, BertPoint{512, 20, 1.00132}})
    if (const std::optional<Result> result = run_bert(point, "tide(effort=100)"))
      CHECK(static_cast<double>(result->totals.makespan.count()) <=
            static_cast<double>(result->baseline.count()) * point.bound * 1.02);
}

TEST_CASE("tide with addresses is near the bound on GPT-2 at half its peak, and no other policy is faster") {
  if (!optimised()) return;
  const Trace trace = load_trace(paths::source_folder() + "/traces/samples/gpt2.tide");
  RunSpec spec{.pool = "best-fit", .policy = "tide(effort=60)", .capacity = trace.ideal_peak() / 2};
  spec.machine = find_machine("a100-pcie4");
  const Result placed = simulate(trace, spec);
  REQUIRE(placed.outcome == Outcome::kOk);
  CHECK(placed.totals.footprint <= spec.capacity);
  CHECK(static_cast<double>(placed.totals.makespan.count()) <=
        1.02 * 1.0060 * static_cast<double>(placed.baseline.count()));  // hybrid-window's bound
  for (const char* other : {"autoswap", "coop", "lru-swap", "next-use", "tide-remat"}) {
    INFO(other);
    spec.policy = other;
    const Result result = simulate(trace, spec);
    CHECK((result.outcome != Outcome::kOk || placed.totals.makespan <= result.totals.makespan));
  }
}

TEST_CASE("if no addresses suit the best plan that counts bytes only, tide with addresses is at most 3 % slower") {
  struct Point {
    const char *trace, *machine;
    int percent;  ///< of the peak
  };
  for (const Point& point : {Point{"vgg16", "v100-pcie3", 40}, Point{"vgg16", "a100-pcie4", 40}}) {
    if (!optimised()) return;
    INFO(point.trace << " on " << point.machine);
    const Trace trace = load_trace(fmt::format("{}/traces/samples/{}.tide", paths::source_folder(), point.trace));
    RunSpec spec{.pool = "ideal", .policy = "tide(effort=100)", .capacity = trace.ideal_peak() * point.percent / 100};
    spec.machine = find_machine(point.machine);
    const Result counted = simulate(trace, spec);
    spec.pool = "best-fit";
    const Result placed = simulate(trace, spec);
    REQUIRE(placed.outcome == Outcome::kOk);
    CHECK(placed.totals.footprint <= spec.capacity);
    CHECK(placed.totals.makespan * 100 <= counted.totals.makespan * 103);
  }
}

TEST_CASE("when tide plans copies of optimizer state, it counts the time for which ops wait for them") {
  if (!optimised()) return;
  // Half of the peak is less than the optimizer's state, so every plan copies state around the optimizer's ops. These
  // ops are much shorter than the copies, so every plan takes at least 3.65 times as long as the step without limit
  // (bound hybrid-window).
  const Trace trace = gpt_step({.layers = 48, .batch = 2});
  const RunSpec spec{
      .pool = "ideal", .policy = "tide", .capacity = trace.ideal_peak() / 2, .steady = true, .iterations = 16};
  const Result result = simulate(trace, spec);
  CHECK(result.outcome == Outcome::kOk);
  CHECK(result.totals.makespan < result.baseline * 6);
}

TEST_CASE("tide finds addresses for a step that fits its memory exactly") {
  const Trace trace = load_trace(paths::source_folder() + "/traces/samples/gpt2.tide");
  const RunSpec spec{.pool = "best-fit", .policy = "tide(effort=20)", .capacity = trace.ideal_peak()};
  const Result result = simulate(trace, spec);
  CHECK(result.outcome == Outcome::kOk);
  CHECK(result.totals.makespan == result.baseline);
}

TEST_CASE("tide's addresses are the same in every iteration of a U-Net at 0.4 of its peak") {
  // Addresses must suit all iterations. If they suit only those that the search runs, the next one takes 15 % longer or
  // more.
  const Trace trace = load_trace(paths::source_folder() + "/traces/samples/unet.tide");
  const RunSpec spec{.pool = "best-fit",
                     .policy = "tide(effort=10)",
                     .capacity = trace.ideal_peak() / 5 * 2,
                     .machine = find_machine("a100-pcie4"),
                     .steady = true,
                     .iterations = 16};
  const Result result = simulate(trace, spec);
  CHECK(result.outcome == Outcome::kOk);
  CHECK(result.cycle.settled);
  CHECK(result.cycle.iterations == 1);
  CHECK(result.totals.makespan < result.baseline / 100 * 105);
}

}  // namespace tidepool::tide_test
