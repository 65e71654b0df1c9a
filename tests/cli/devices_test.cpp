// Commands on traces of several devices.
#include <filesystem>

#include "tests/catch.hpp"
#include "tests/program.hpp"
#include "tests/trace_file.hpp"
#include "traces/builder.hpp"

namespace tidepool::devices_test {

namespace {

/// 10 B on device 0 and 20 B on device 1, alive at the same time.
Trace two_devices() {
  TraceBuilder build;
  const BufferId a = build.alloc({.size = 10_B}), b = build.alloc({.size = 20_B, .device = 1});
  build.run({.duration = 5_ns}, {{a, Access::kWrite}, {b, Access::kWrite}});
  build.free(a), build.free(b);
  return build.finish();
}

}  // namespace

TEST_CASE("commands whose runs have one memory refuse a trace of two devices") {
  const ScratchFolder scratch;
  const std::string path = tests::write_trace(scratch, "two", two_devices()), database = scratch.file("r.sqlite");
  const std::string why = "the trace is of 2 devices; expected one, as ",
                    how = " (tidepool import --device keeps one)\n";
  const auto said = [](const std::vector<std::string>& words) {
    const ProgramResult result = run_program(words);
    CHECK(result.code == 2);
    CHECK(result.out == "");
    return result.err;
  };
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{"simulate", path, "--capacity", "1.0x"},
                                             {"bound", path, "--capacity", "1.0x"},
                                             {"simulate", "--view", path},
                                             {"sweep", path, "--capacity", "1.0x", "-o", database},
                                             {"report", path, "-o", scratch.file("r.html")}}) {
    INFO(words[0]);
    CHECK(said(words) == "tidepool: " + path + ": " + why + "a run has one memory" + how);
  }
  CHECK_FALSE(std::filesystem::exists(database));
  CHECK(said({"order", path, "-o", scratch.file("o.tide")}) ==
        "tidepool: " + path + ": " + why + "an order has one peak" + how);
}

TEST_CASE("pack places the buffers of each device in a memory of its own") {
  const ScratchFolder scratch;
  const ProgramResult result = run_program({"pack", tests::write_trace(scratch, "two", two_devices())});
  CHECK(result.code == 0);
  CHECK_THAT(result.out, Catch::Matchers::Contains("load 30 B"));
}

}  // namespace tidepool::devices_test
