#include "traces/summary.hpp"

#include <string>
#include <vector>

#include "tests/catch.hpp"
#include "traces/builder.hpp"

namespace tidepool::summary_test {

TEST_CASE("info says in words which values are in no known buffer, and by how much clocks differ") {
  TraceBuilder build;
  build.losses() = {.unknown_pointers = 500, .clock_residual_ns = 4'089'627};
  CHECK(warnings(build.finish()) ==
        std::vector<std::string>{
            "500 values in kernel parameters look like device addresses but are in no recorded buffer",
            "clocks of the recording differ by up to 4.09 ms after they were aligned"});
  TraceBuilder one;
  one.losses() = {.unknown_pointers = 1};
  CHECK(warnings(one.finish()) ==
        std::vector<std::string>{
            "1 value in kernel parameters looks like a device address but is in no recorded buffer"});
}

TEST_CASE(
    "of a dry run, info does not tell how Tidepool's own clocks differ, nor of kernels' values where operators say "
    "more") {
  const auto lines = [](const std::string& ops) {
    TraceBuilder build;
    build.losses() = {.unknown_pointers = 1, .clock_residual_ns = 4'089'627};
    build.meta() = {{"mode", "dry run: no device; device times are estimates"}, {"ops", ops}};
    return warnings(build.finish()).size();
  };
  CHECK(lines("") == 1);
  CHECK(lines("native") == 0);
}

TEST_CASE("a host takes time to issue ops whose times a model estimated, once for those of a graph") {
  const auto issue = [](const std::string& error, std::vector<Nanos> launches) {
    TraceBuilder build;
    for (const Nanos launch : launches) build.run({.launch = launch, .duration = 1_us}, {});
    if (!error.empty()) build.meta() = {{"times", "h200"}, {"times_error", error}};
    return issue_time(build.finish());
  };
  const Nanos unknown{-1};
  CHECK(issue("", {unknown, unknown}) == 0_us);
  CHECK(issue("10 %", {}) == 0_us);
  CHECK(issue("10 %", {unknown, unknown}) == 40_us);
  CHECK(issue("10 %", {5_us, 9_us, 9_us, 9_us}) == 20_us);  // two launches for four ops
}

}  // namespace tidepool::summary_test
