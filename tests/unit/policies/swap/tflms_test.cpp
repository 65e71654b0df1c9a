// TFLMS in closed form: the edges that are cut, the starts of copies, and the results of the search.
#include <fmt/format.h>

#include "simulator/result.hpp"
#include "tests/catch.hpp"
#include "tests/exact_run.hpp"
#include "tests/layer_trace.hpp"
#include "traces/base/error.hpp"

namespace tidepool::tflms_test {

using tests::exact_run;
using tests::layer_trace;

namespace {

/// The forward ops of layers 1 to 5 are at levels 0 to 4, the loss at 5, its backward at 6, the backward ops at 7 to
/// 11. x_i is written at level i - 1 and read again at level 11 - i, which is 12 - 2 i levels later.
Trace five_layers() { return layer_trace(std::vector<tests::ChainLayer>(5, {"op", 100_ns, 100_ns, 100_B}), 100_B); }

}  // namespace

TEST_CASE("edges longer than the threshold are cut") {
  for (const auto& [threshold, cut] :
       {std::pair{3, 4}, std::pair{4, 3}, std::pair{7, 2}, std::pair{8, 1}, std::pair{9, 1}, std::pair{10, 0}}) {
    INFO(threshold);
    const Result result =
        exact_run(five_layers(), fmt::format("tflms(threshold={},ahead=1,groupby=0,least=2B)", threshold));
    CHECK(result.totals.swap_out == 100_B * cut);
    CHECK(result.totals.swap_in == 100_B * cut);
  }
}

TEST_CASE("a swap-in is triggered more than `ahead` levels before its reader, or with sync=2 only at the reader") {
  // The backward of layer 5 reads x_4 at level 7. The swap-in of x_4 begins after the loss, at level 5. The loss's
  // backward hides 10 ns of it. Each swap-in of x_3, x_2 and x_1 is hidden by the backward of one layer.
  const std::string policy = "tflms(threshold=3,ahead=1,groupby=0,least=2B";
  CHECK(exact_run(five_layers(), policy + ")").totals.stall.h2d == 90_ns);
  CHECK(exact_run(five_layers(), policy + ")").totals.stall.d2h == 0_ns);
  CHECK(exact_run(five_layers(), policy + ",sync=2)").totals.stall.h2d == 400_ns);
  const Result waited = exact_run(five_layers(), policy + ",sync=1)");
  CHECK(waited.totals.stall.d2h == 400_ns);
  CHECK(waited.totals.swap_in == 400_B);
}

TEST_CASE("readers within `groupby` levels share a swap-in") {
  // a is written at level 0 and read at levels 4 and 7.
  TraceBuilder build;
  const BufferId a = build.alloc({.size = 100_B});
  BufferId last = build.alloc({.size = 1_B});
  build.run({.duration = 100_ns}, {{a, Access::kWrite}, {last, Access::kWrite}});
  for (int level = 1; level <= 7; ++level) {
    const BufferId next = build.alloc({.size = 1_B});
    std::vector<TraceBuilder::Touch> touches{{last}, {next, Access::kWrite}};
    if (level == 4 || level == 7) touches.push_back({a});
    build.run({.duration = 100_ns}, touches);
    last = next;
  }
  build.free(a);
  const Trace trace = build.finish();
  for (const auto& [group_by, copies] : {std::pair{0, 2}, std::pair{2, 2}, std::pair{3, 1}}) {
    const Result result = exact_run(trace, fmt::format("tflms(threshold=2,ahead=0,groupby={},least=2B)", group_by));
    CHECK(result.totals.swap_in == 100_B * copies);
    CHECK(result.totals.swap_out == 100_B);
  }
}

TEST_CASE("the search finds the largest threshold that fits") {
  const Trace trace = five_layers();
  CHECK(exact_run(trace, "tflms(least=2B)", trace.ideal_peak()).totals.swap_out == 0_B);
  int found = 0;
  for (Bytes capacity = 350_B; capacity < trace.ideal_peak(); capacity += 50_B) {
    INFO(to_text(capacity));
    int threshold = 12;
    while (
        threshold > 0 &&
        exact_run(trace, fmt::format("tflms(threshold={},ahead=1,groupby=0,least=2B)", threshold), capacity).outcome !=
            Outcome::kOk)
      --threshold;
    const Result result = exact_run(trace, "tflms(least=2B)", capacity);
    if (threshold == 0) continue;
    ++found;
    CHECK(result.outcome == Outcome::kOk);
    CHECK(result.totals.swap_out ==
          exact_run(trace, fmt::format("tflms(threshold={},ahead=1,groupby=0,least=2B)", threshold), capacity)
              .totals.swap_out);
  }
  CHECK(found > 1);
}

TEST_CASE("numbers of levels outside their range are refused") {
  for (const std::string name : {"threshold", "ahead", "groupby"})
    for (const std::string value : {"-2", "0.5"})
      CHECK_THROWS_WITH(
          exact_run(five_layers(), "tflms(" + name + "=" + value + ")"),
          "tflms: option '" + name + "' is '" + value + "'; expected a whole number from -1 to 1000000000");
}

}  // namespace tidepool::tflms_test
