#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "simulator/engine/machine/machine_file.hpp"
#include "tests/catch.hpp"
#include "tests/chain_trace.hpp"
#include "tests/program.hpp"
#include "tests/trace_file.hpp"
#include "traces/base/input.hpp"
#include "traces/builder.hpp"

namespace tidepool::bound_test {

using Catch::Matchers::StartsWith;
using Json = nlohmann::json;

namespace {

std::string chain_file(const ScratchFolder& scratch) {
  return tests::write_trace(scratch, "chain", tests::chain_trace(16));
}

}  // namespace

TEST_CASE("tidepool bound prints one object for each capacity, the best bound last") {
  const ScratchFolder scratch;
  const ProgramResult result =
      run_program({"bound", chain_file(scratch), "--capacity", "3999B,13kB,none", "--with", "remat", "--json"});
  CHECK(result.code == 0);
  CHECK(result.err.empty());
  std::istringstream lines{result.out};
  std::vector<Json> seen;
  for (std::string line; std::getline(lines, line);) seen.push_back(Json::parse(line));
  REQUIRE(seen.size() == 3);
  // A backward op needs three versions at once: a gradient, an activation and the gradient that it makes. x_0 must
  // stay, too: 4000 B.
  CHECK(seen[0]["feasible"] == false);
  CHECK(seen[0]["bounds"].back()["proof"].get<std::string>().ends_with("cannot be recomputed, takes 3.906 KiB"));
  CHECK_FALSE(seen[0]["bounds"].back().contains("makespan_ns"));
  CHECK(seen[0]["bounds"].back()["limited_by"] == "memory");
  // The step takes 33 us. Beside x_0 and two gradients, 10 of the 15 activations fit; the other 5 are recomputed.
  CHECK(seen[1]["capacity_bytes"] == 13'000);
  CHECK(seen[1]["feasible"] == true);
  CHECK(seen[1]["with"] == "remat");
  CHECK(seen[1]["bounds"].front()["name"] == "critical-path");
  CHECK(seen[1]["bounds"].front()["with"] == "swap,remat");
  CHECK(seen[1]["bounds"].front()["makespan_ns"] == 33'000);
  CHECK(seen[1]["bounds"].back()["with"] == "remat");
  CHECK(seen[1]["bounds"].back()["makespan_ns"] == 38'000);
  CHECK(seen[1]["bounds"].front()["limited_by"] == "compute");
  CHECK(seen[1]["bounds"].back()["limited_by"] == "recompute");
  CHECK_FALSE(seen[2].contains("capacity_bytes"));
  CHECK(seen[2]["bounds"].back()["makespan_ns"] == 33'000);
  CHECK(seen[2]["free_from_bytes"] == 18'000);  // at the loss, x_0 to x_16 and one gradient are live
}

TEST_CASE("tidepool bound says which bounds it leaves out for a long step, and computes them within a time limit") {
  const ScratchFolder scratch;
  const std::string chain = tests::write_trace(scratch, "chain", tests::chain_trace(2'600));  // 5,201 ops
  CHECK_THAT(run_program({"bound", chain, "--capacity", "0.8x"}).out,
             ContainsSubstring("  hybrid-fluid     is left out for 5,201 ops; --time-limit asks for it\n"));
  const auto json = [&](std::vector<std::string> more) {
    std::vector<std::string> words{"bound", chain, "--capacity", "0.8x", "--with", "swap", "--json"};
    words.insert(words.end(), more.begin(), more.end());
    return Json::parse(run_program(words).out);
  };
  CHECK(json({})["left_out"] == Json{"hybrid-fluid", "swap-fluid"});
  CHECK_FALSE(json({"--time-limit", "100ms"}).contains("left_out"));
}

TEST_CASE("without --json, tidepool bound prints a table of bounds with their proofs") {
  const ScratchFolder scratch;
  const std::string trace = chain_file(scratch);
  const ProgramResult result = run_program({"bound", trace, "--capacity", "13kB", "--with", "none"});
  CHECK(result.code == 0);
  CHECK(result.out.starts_with(
      trace +
      ": lower bounds on plans that keep everything, the best last; the step takes 33 us without any limit, "
      "peak 17.58 KiB\n"
      "a100-pcie4: free of overhead in no less than 17.58 KiB (1x the peak)\n"
      "\n"
      "12.7 KiB (0.722x the peak)\n"
      "  critical-path    swap,remat  33 us (+0.000 %)         compute    every op runs once, one after the other\n"));
  CHECK(result.out.ends_with(
      "  load             none        infeasible               memory     the content that is alive at once "
      "takes 17.58 KiB, and no action may move or drop it\n"));
}

TEST_CASE("bound compares with the time of a step without limit on this machine, launches included") {
  // 33 ops of 1 us, one after the other; a launch takes 2 us, and each op waits for its own: 33 * 2 + 1 us.
  const ScratchFolder scratch;
  const std::string trace = chain_file(scratch);
  Machine machine;
  machine.name = "slow", machine.source = "a test";
  machine.launch = 2_us;
  write_file(scratch.file("slow.json"), machine_file(machine));
  const std::string machines = "a100-pcie4," + scratch.file("slow.json");
  const ProgramResult result = run_program({"bound", trace, "--capacity", "none", "--machine", machines});
  CHECK(result.code == 0);
  CHECK_THAT(result.out,
             ContainsSubstring("; the step takes 33 us without any limit, peak 17.58 KiB\na100-pcie4: free"));
  CHECK_THAT(result.out, ContainsSubstring("33 us (+0.000 %)"));
  CHECK_THAT(result.out, ContainsSubstring("slow: the step takes 67 us without any limit\nslow: free"));
  CHECK_THAT(result.out,
             ContainsSubstring("67 us (+0.000 %)         compute    every op runs once, after the host launched it"));
}

TEST_CASE("bound prints no share of a step that takes no time") {
  const ScratchFolder scratch;
  TraceBuilder build;
  build.existing({.size = 8_B});
  const std::string trace = tests::write_trace(scratch, "still", build.finish());
  CHECK_THAT(run_program({"bound", trace, "--capacity", "none"}).out,
             ContainsSubstring("swap,remat  0 ns                     compute "));
}

TEST_CASE("without uses there is no plan, bound or advice, and the message says which recording has them") {
  const ScratchFolder scratch;
  const std::string trace = scratch.file("t.jsonl");
  std::ofstream{trace} << R"({"tidepool":1,"streams":["0"],"strings":[""]})"
                       << "\n{\"alloc\":0,\"size_bytes\":1024}\n{\"run\":\"k\",\"duration_ns\":7}\n{\"free\":0}\n";
  const std::string expected = "; expected a recording of `tidepool record --torch`, or of `record --dry --torch`\n";
  const auto refused = [](std::vector<std::string> words, const std::string& message) {
    const ProgramResult result = run_program(words);
    CHECK(result.code == 2);
    CHECK(result.err == message);
    CHECK(result.out.empty());
  };
  refused({"bound", trace, "--capacity", "0.5x"},
          "tidepool: " + trace +
              ": no op of the trace says which buffers it uses, so a bound would hold for plans that "
              "cannot be carried out" +
              expected);
  const std::string policy =
      "tidepool: --policy: no op of the trace says which buffers it uses, so a plan could move any buffer at no cost";
  refused({"simulate", trace, "--policy", "none,lru-swap", "--capacity", "0.5x"}, policy + expected);
  refused({"sweep", trace, "--policy", "dtr", "--capacity", "0.5x", "-o", scratch.file("r.sqlite")}, policy + expected);
  CHECK(run_program({"simulate", trace, "--policy", "none"}).code == 0);
  CHECK(run_program({"bound", trace, "--capacity", "0.5x", "--with", "none"}).code == 0);
}

TEST_CASE("bad arguments of bound are refused with exit code 2 and a message") {
  const ScratchFolder scratch;
  const std::string trace = chain_file(scratch);
  const ProgramResult with = run_program({"bound", trace, "--capacity", "0.5x", "--with", "swap,recompute"});
  CHECK(with.code == 2);
  CHECK(with.err ==
        "tidepool: --with: 'recompute' is no kind of action; expected some of order, swap and remat, as "
        "in order,swap, or none\n");
  CHECK(run_program({"bound", trace}).code == 2);
  const ProgramResult steady = run_program({"bound", trace, "--capacity", "0.5x", "--steady", "--iterations", "3"});
  CHECK(steady.code == 2);
  CHECK(steady.err == "tidepool: --steady: expected without --iterations\n");
  const ProgramResult capacity = run_program({"bound", trace, "--capacity", "half"});
  CHECK(capacity.code == 2);
  CHECK(capacity.err ==
        "tidepool: --capacity: 'half' is not a size; expected a number and B, kB, MB, GB, TB, KiB, MiB, GiB, TiB, K, "
        "M, G or T, as in 512MiB; or a share of the peak, as in 0.5x; or none\n");
  const ProgramResult tiny = run_program({"bound", trace, "--capacity", "1e-300x"});
  CHECK(tiny.code == 2);
  CHECK_THAT(tiny.err, StartsWith("tidepool: '1e-300x' is less than one byte of the peak of "));
}

TEST_CASE("a run reports its gap to the bound") {
  const ScratchFolder scratch;
  const std::string trace = chain_file(scratch);
  const auto run = [&](const std::string& policy, const std::string& capacity) {
    return Json::parse(
        run_program({"simulate", trace, "--pool", "ideal", "--policy", policy, "--capacity", capacity, "--json"}).out);
  };
  const Json recomputed = run("dtr", "13kB");
  CHECK(recomputed["outcome"] == "ok");
  CHECK(recomputed["bound_ns"] == 38'000);
  CHECK(recomputed["limited_by"] == "recompute");
  CHECK(recomputed["gap"].get<double>() == recomputed["makespan_ns"].get<double>() / 38'000 - 1);
  const Json too_small = run("dtr", "3999B");
  CHECK(too_small["bound_kind"] == "working-set");
  CHECK(too_small["limited_by"] == "memory");
  CHECK_FALSE(too_small.contains("bound_ns"));
  CHECK_FALSE(too_small.contains("gap"));
  const Json kept = run("none", "1.0x");
  CHECK(kept["bound_kind"] == "critical-path");
  CHECK(kept["limited_by"] == "compute");
  CHECK(kept["gap"] == 0.0);
  const ProgramResult told =
      run_program({"simulate", trace, "--pool", "ideal", "--policy", "dtr", "--capacity", "13kB"});
  CHECK_THAT(told.out,
             ContainsSubstring(
                 "bound       38 us: no plan with remat repeats the step in less (knapsack, limited by recompute); "));
}

}  // namespace tidepool::bound_test
