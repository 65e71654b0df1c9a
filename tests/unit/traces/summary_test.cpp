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

}  // namespace tidepool::summary_test
