#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "simulator/plan_file.hpp"
#include "simulator/run.hpp"
#include "tests/catch.hpp"
#include "tests/paths.hpp"
#include "tests/program.hpp"
#include "tests/trace_file.hpp"
#include "traces/builder.hpp"
#include "traces/import/importer.hpp"

namespace tidepool::simulate_test {

using Catch::Matchers::StartsWith;
using Json = nlohmann::json;

namespace {

/// Three ops of 1 ms on buffers of 100 MiB: op0 makes a, op1 makes b, op2 reads a. Peak 200 MiB.
std::string small_trace(const ScratchFolder& scratch) {
  TraceBuilder build;
  const BufferId a = build.alloc({.size = 100_MiB});
  build.run({.duration = 1_ms}, {{a, Access::kWrite}});
  const BufferId b = build.alloc({.size = 100_MiB});
  build.run({.duration = 1_ms}, {{b, Access::kWrite}});
  build.run({.duration = 1_ms}, {{a, Access::kRead}});
  build.free(a);
  build.free(b);
  return tests::write_trace(scratch, "small", build.finish());
}

void check_key(const Json& run, const std::string& key, Json::value_t type) {
  INFO(key);
  REQUIRE(run.contains(key));
  CHECK(run[key].type() == type);
}

}  // namespace

TEST_CASE("tidepool simulate --json prints every key with its type") {
  const ScratchFolder scratch;
  const ProgramResult result =
      run_program({"simulate", small_trace(scratch), "--capacity", "200MiB", "--overhead-limit", "2.0", "--json"});
  CHECK(result.code == 0);
  CHECK(result.err.empty());
  const Json run = Json::parse(result.out);
  for (const char* key : {"trace", "trace_hash", "pool", "policy", "options", "machine", "machine_hash", "assume",
                          "version", "outcome", "bound_kind"})
    check_key(run, key, Json::value_t::string);
  for (const char* key : {"count_search", "steady"}) check_key(run, key, Json::value_t::boolean);
  for (const char* key : {"capacity_bytes",
                          "seed",
                          "iterations",
                          "ideal_peak_bytes",
                          "peak_bytes",
                          "footprint_bytes",
                          "baseline_ns",
                          "makespan_ns",
                          "recompute_ns",
                          "recompute_count",
                          "eviction_count",
                          "evicting_allocations",
                          "swap_out_bytes",
                          "swap_in_bytes",
                          "first_iteration_ns",
                          "start_on_host_bytes",
                          "cost_evaluations",
                          "plan_ns",
                          "actions",
                          "bound_ns"})
    check_key(run, key, Json::value_t::number_unsigned);
  for (const char* key : {"overhead_limit", "fragmentation", "overhead_ratio", "actions_per_second", "gap"})
    check_key(run, key, Json::value_t::number_float);
  for (const char* key : {"compute", "h2d", "d2h", "memory"})
    check_key(run["stall_ns"], key, Json::value_t::number_unsigned);
  CHECK(run["outcome"] == "ok");
  CHECK(run["capacity_bytes"] == 200 << 20);
  CHECK(run["ideal_peak_bytes"] == 200 << 20);
  CHECK(run["peak_bytes"] == 200 << 20);
  CHECK(run["footprint_bytes"] == 200 << 20);
  CHECK(run["fragmentation"] == 0.0);
  CHECK(run["makespan_ns"] == 3'000'000);
  CHECK(run["overhead_ratio"] == 1.0);
  CHECK(run["gap"] == 0.0);
  CHECK_FALSE(run.contains("message"));
}

TEST_CASE("keys without meaning are absent") {
  const ScratchFolder scratch;
  const ProgramResult result = run_program({"simulate", small_trace(scratch), "--pool", "ideal", "--capacity", "none",
                                            "--overhead-limit", "none", "--json"});
  const Json run = Json::parse(result.out);
  for (const char* key : {"capacity_bytes", "footprint_bytes", "fragmentation", "eviction_fragmentation", "search_ns",
                          "overhead_limit", "message", "cycle_iterations", "lead_in_iterations", "settled"})
    CHECK_FALSE(run.contains(key));
  CHECK(run["addresses"] == false);
}

TEST_CASE("search time is added to the makespan if requested, and the output says so") {
  const ScratchFolder scratch;
  const ProgramResult result =
      run_program({"simulate", small_trace(scratch), "--policy", "dtr", "--count-search", "--json"});
  const Json run = Json::parse(result.out);
  CHECK(run["count_search"] == true);
  check_key(run, "search_ns", Json::value_t::number_unsigned);
  CHECK(run["search_ns"] > 0);
  CHECK(run["makespan_ns"].get<int>() - run["search_ns"].get<int>() == 3'000'000);
}

TEST_CASE("out of memory is a result, with clocks up to the failure") {
  const ScratchFolder scratch;
  const ProgramResult result = run_program({"simulate", small_trace(scratch), "--capacity", "0.5x", "--json"});
  CHECK(result.code == 0);
  const Json run = Json::parse(result.out);
  CHECK(run["outcome"] == "out_of_memory");
  CHECK(run["capacity_bytes"] == 100 << 20);
  CHECK(run["makespan_ns"] == 1'000'000);
  CHECK(run["overhead_ratio"].get<double>() == 1.0 / 3);
  CHECK_FALSE(run["message"].get<std::string>().empty());
  CHECK_FALSE(run.contains("gap"));
}

TEST_CASE("lists of options give one line for each run") {
  const ScratchFolder scratch;
  const ProgramResult result = run_program(
      {"simulate", small_trace(scratch), "--pool", "best-fit,ideal", "--capacity", "0.5x..1.0x/3", "--json"});
  CHECK(result.code == 0);
  std::istringstream lines{result.out};
  std::vector<std::string> seen;
  for (std::string line; std::getline(lines, line);) {
    const Json run = Json::parse(line);
    seen.push_back(run["pool"].get<std::string>() + " " + std::to_string(run["capacity_bytes"].get<int>() >> 20));
  }
  CHECK(seen == std::vector<std::string>{"best-fit 100", "best-fit 150", "best-fit 200", "ideal 100", "ideal 150",
                                         "ideal 200"});
}

TEST_CASE("without --json the results are a table, with the rate") {
  const ScratchFolder scratch;
  const std::string trace = small_trace(scratch);
  const ProgramResult result = run_program({"simulate", trace, "--policy", "lru-swap", "--capacity", "none"});
  CHECK(result.code == 0);
  CHECK(result.err.empty());
  const std::string told =
      trace +
      ": lru-swap on best-fit, a100-pcie4, no limit\n"
      "outcome     ok\n"
      "memory      peak 200 MiB, footprint 200 MiB, fragmentation 0.0 %\n"
      "time        3 ms, 3 ms without policy and limit: +0.00 %\n"
      "step        one step alone, which began with nothing on the host only\n"
      "evicted     0 versions\n"
      "recomputed  0 ns in 0 runs\n"
      "swapped     0 B out, 0 B in\n"
      "stalls      compute waited 0 ns: 0 ns for copies in, 0 ns for places still in use, 0 ns for other ops\n"
      "bound       3 ms: no plan with swap,remat is faster (critical-path, limited by compute); this one takes +0.00 "
      "%\n"
      "7 actions in ";
  CHECK(result.out.substr(0, told.size()) == told);
  CHECK(result.out.find("/s\n", told.size()) == result.out.size() - 3);
}

TEST_CASE("simulate says when live bytes fit but their places do not, and autoswap plans for the places") {
  // a (20 MiB) lies between two buffers that end before b (20 MiB) begins, so at 1.0x there are two holes of 10 MiB.
  // The ops between do not use a, so it could be swapped out and in meanwhile.
  const ScratchFolder scratch;
  TraceBuilder build;
  const BufferId x = build.alloc({.size = 10_MiB}), a = build.alloc({.size = 20_MiB}),
                 y = build.alloc({.size = 10_MiB});
  build.run({.duration = 1_ms}, {{x, Access::kWrite}, {a, Access::kWrite}, {y, Access::kWrite}});
  build.free(x);
  build.free(y);
  build.run({.duration = 10_ms}, {});
  const BufferId b = build.alloc({.size = 20_MiB});
  build.run({.duration = 1_ms}, {{b, Access::kWrite}});
  build.free(b);
  build.run({.duration = 10_ms}, {});
  build.run({.duration = 1_ms}, {{a, Access::kRead}});
  build.free(a);
  const std::string trace = tests::write_trace(scratch, "holes", build.finish());
  const std::string note = "found no place 1 time: memory was freed on demand\n";
  const auto told = [&](const std::string& policy) {
    const ProgramResult result = run_program({"simulate", trace, "--policy", policy, "--capacity", "1.0x"});
    CHECK(result.code == 0);
    return result.out;
  };
  const std::string published = told("autoswap(scheduling=published)");
  CHECK(published.find("            the live bytes would fit, but best-fit " + note) != std::string::npos);
  CHECK(published.find("policy and limit: +0.00 %") == std::string::npos);
  const std::string late = told("autoswap");
  CHECK(late.find(note) == std::string::npos);
  CHECK(late.find("policy and limit: +0.00 %") != std::string::npos);
}

namespace {

/// A weight of 100 MiB that op 0 updates; op 1 makes a buffer of the same size. Peak 200 MiB.
std::string repeated_trace(const ScratchFolder& scratch) {
  TraceBuilder build;
  const BufferId weight = build.existing({.size = 100_MiB});
  build.run({.duration = 1_ms}, {{weight, Access::kReadWrite}});
  const BufferId room = build.alloc({.size = 100_MiB});
  build.run({.duration = 1_ms}, {{room, Access::kWrite}});
  build.free(room);
  return tests::write_trace(scratch, "repeated", build.finish());
}

}  // namespace

TEST_CASE("a step whose buffers outlive it is shown in its steady state, whatever the number of iterations tried") {
  const ScratchFolder scratch;
  const std::string trace = repeated_trace(scratch);
  const auto run = [&](std::vector<std::string> more) {
    more.insert(more.begin(),
                {"simulate", trace, "--policy", "lru-swap", "--capacity", "0.5x", "--machine", "g10-a100", "--json"});
    const ProgramResult result = run_program(more);
    CHECK(result.code == 0);
    CHECK(result.err.empty());
    return Json::parse(result.out);
  };
  const std::int64_t copy = find_machine("g10-a100").d2h.time(100_MiB).count();  // the same time in both directions
  std::vector<Json> runs{run({})};
  for (const char* tried : {"1", "2", "3", "8", "16", "40"}) runs.push_back(run({"--iterations", tried}));
  for (const Json& one : runs) {
    CHECK(one["steady"] == true);
    CHECK(one["first_iteration_ns"] == 2'000'000 + copy);  // a swap-out; the weight may stay on the host
    CHECK(one["makespan_ns"] == 2'000'000 + 2 * copy);
    CHECK(one["cycle_iterations"] == 1);
    CHECK(one["lead_in_iterations"] == 1);
    CHECK(one["settled"] == true);
    CHECK(one["start_on_host_bytes"] == 0);
    CHECK(one["swap_out_bytes"] == 100 << 20);
    CHECK(one["swap_in_bytes"] == 100 << 20);
    CHECK(one["bound_ns"] > 2'000'000 + copy);
    CHECK(one["bound_ns"] <= one["makespan_ns"]);
  }
  // If the step runs alone, the weight must be on the device when it ends.
  const Json first = run({"--first"});
  CHECK(first["steady"] == false);
  CHECK(first["makespan_ns"] == 2'000'000 + 2 * copy);
  CHECK_FALSE(first.contains("cycle_iterations"));
  CHECK(first["start_on_host_bytes"] == 0);
}

namespace {

/// A step that never settles: nothing makes stream a wait for b, which falls behind by 1 ms in each iteration.
std::string write_unsettled(const ScratchFolder& scratch) {
  TraceBuilder build{{"a", "b"}};
  const BufferId weight = build.existing({.size = 100_MiB});
  build.run({.stream = StreamId{0}, .duration = 1_ms}, {{weight}});
  build.run({.stream = StreamId{1}, .duration = 2_ms}, {});
  return tests::write_trace(scratch, "apart", build.finish());
}

}  // namespace

TEST_CASE("a run of very many iterations ends on request, and says how many it has done") {
  const ScratchFolder scratch;
  const std::string trace = write_unsettled(scratch);
  std::string err;
  // On a busy machine the signal may come before the run has begun; then the next one comes later.
  for (int seconds = 2; seconds <= 50 && err.empty(); seconds *= 5) {
    const std::string line = fmt::format(
        "timeout --foreground --preserve-status -s TERM {} '{}' simulate '{}' --iterations 1000000000 >'{}' 2>'{}'",
        seconds, paths::program(), trace, scratch.file("out"), scratch.file("err"));
    const int status = std::system(line.c_str());
    CHECK(WEXITSTATUS(status) == 143);
    CHECK(content_of(scratch.file("out")).empty());
    err = content_of(scratch.file("err"));
  }
  CHECK(err.starts_with("none: interrupted after "));
  CHECK(err.ends_with(" of 1000000000 iterations\n"));
}

TEST_CASE("a search for a plan ends on request") {
  const ScratchFolder scratch;
  const std::string sample = paths::source_folder() + "/traces/samples/gpt2.tide";
  const std::string plan = scratch.file("tide.plan");
  // A search that would take hours. A signal may come while the trace is read; then the next one comes later.
  const std::string early = "simulate: interrupted; there is no answer yet\n";
  std::string err;
  for (int seconds = 2; seconds <= 50 && (err.empty() || err == early); seconds *= 5) {
    const std::string line = fmt::format(
        "timeout --foreground --preserve-status -k 60 -s INT {} '{}' simulate '{}' --policy 'tide(effort=10000000)' "
        "--capacity 0.5x --plan-out '{}' >'{}' 2>'{}'",
        seconds, paths::program(), sample, plan, scratch.file("out"), scratch.file("err"));
    CHECK(WEXITSTATUS(std::system(line.c_str())) == 130);
    err = content_of(scratch.file("err"));
  }
  CHECK(err == "tide(effort=10000000): interrupted before the run had a result\n");
  CHECK(content_of(scratch.file("out")).empty());
  CHECK_FALSE(std::filesystem::exists(plan));
}

TEST_CASE("a run that does not settle says so on stderr") {
  const ScratchFolder scratch;
  const std::string trace = write_unsettled(scratch);
  const auto simulate = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"simulate", trace, "--capacity", "1.0x", "--json"});
    return run_program(more);
  };
  const ProgramResult result = simulate({});
  CHECK(result.code == 0);
  CHECK(result.err == "none: no iteration of 16 begins as an earlier one did; times are means over the last 8\n");
  const Json run = Json::parse(result.out);
  CHECK(run["settled"] == false);
  CHECK(run["cycle_iterations"] == 8);
  CHECK(run["makespan_ns"] == 2'000'000);
  CHECK(simulate({"--iterations", "1"}).err == result.err);
  CHECK(simulate({"--iterations", "30"}).err ==
        "none: no iteration of 30 begins as an earlier one did; times are means over the last 15\n");
}

TEST_CASE("without --json the output says which iterations the means cover, and how the first one began") {
  const ScratchFolder scratch;
  const std::string trace = repeated_trace(scratch);
  const auto told = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"simulate", trace, "--policy", "lru-swap", "--machine", "g10-a100"});
    return run_program(more).out;
  };
  CHECK(
      told({"--capacity", "0.5x"}).find("\niteration   the mean of a cycle of 1 after 1 iteration; the first took ") !=
      std::string::npos);
  CHECK(told({"--capacity", "1.0x"})
            .find("\niteration   the mean of a cycle of 1; the first took 2 ms and began with nothing on the host "
                  "only\n") != std::string::npos);
  CHECK(told({"--capacity", "0.5x"}).find("no plan with swap repeats the step in less") != std::string::npos);
  CHECK(told({"--capacity", "0.5x", "--first"})
            .find("\nstep        one step alone, which began with nothing on the host only\n") != std::string::npos);
}

TEST_CASE("a step that begins with some of its state on the host says how much") {
  // Two weights of 100 and 60 MiB. Only one of them fits.
  const ScratchFolder scratch;
  TraceBuilder build;
  const BufferId a = build.existing({.size = 100_MiB}), b = build.existing({.size = 60_MiB});
  build.run({.duration = 1_ms}, {{a}});
  build.run({.duration = 1_ms}, {{b}});
  const std::string trace = tests::write_trace(scratch, "two", build.finish());
  const ProgramResult result = run_program(
      {"simulate", trace, "--policy", "lru-swap", "--capacity", "100MiB", "--machine", "g10-a100", "--first"});
  CHECK(result.code == 0);
  CHECK(result.out.find("\nstep        one step alone, which began with 60 MiB of its state on the host only; the "
                        "copies that put it there are not counted\n") != std::string::npos);
}

TEST_CASE("the written plan has the actions of the run") {
  const ScratchFolder scratch;
  const std::string path = small_trace(scratch), plan = scratch.file("small.plan");
  const ProgramResult result = run_program({"simulate", path, "--policy", "lru-swap", "--capacity", "0.5x", "--machine",
                                            "g10-a100", "--seed", "7", "--plan-out", plan, "--json"});
  CHECK(result.code == 0);
  CHECK(result.err.empty());
  const Json run = Json::parse(result.out);
  const Trace trace = load_trace(path);
  const PlanFile file = read_plan(plan, &trace);
  CHECK(file.spec.policy == "lru-swap");
  CHECK(file.spec.machine.name == "g10-a100");
  CHECK(file.spec.capacity == 100_MiB);
  CHECK(file.spec.seed == 7);
  CHECK(file.predicted.makespan.count() == run["makespan_ns"]);
  CHECK(file.predicted.swap_out == 200_MiB);  // a is swapped out for b, and b when a is swapped in
  CHECK(replay(trace, file.spec, file.plan) == file.predicted);
}

TEST_CASE("a run that did not end well has no plan to write") {
  const ScratchFolder scratch;
  const std::string trace = small_trace(scratch), plan = scratch.file("small.plan");
  const ProgramResult result = run_program({"simulate", trace, "--capacity", "0.5x", "--plan-out", plan, "--json"});
  CHECK(result.code == 1);
  CHECK(Json::parse(result.out)["outcome"] == "out_of_memory");
  CHECK(result.err ==
        plan + ": not written; the run ended with out_of_memory, and only a run with outcome ok has a plan\n");
  CHECK(content_of(plan).empty());
  const ProgramResult two = run_program({"simulate", trace, "--capacity", "0.5x,none", "--plan-out", plan});
  CHECK(two.code == 2);
  CHECK(two.err == "tidepool: --plan-out: the lists ask for 2 runs; expected one\n");
}

TEST_CASE("bad arguments of simulate are refused with exit code 2 and a message") {
  const ScratchFolder scratch;
  const std::string trace = small_trace(scratch);
  const auto refused = [&](std::vector<std::string> arguments, const std::string& message) {
    arguments.insert(arguments.begin(), {"simulate", trace});
    const ProgramResult result = run_program(arguments);
    CHECK(result.code == 2);
    CHECK(result.out.empty());
    CHECK(result.err == "tidepool: " + message + "\n");
  };
  refused({"--capacity", "1xb"},
          "--capacity: '1xb' is not a size; expected a number and B, kB, MB, GB, TB, KiB, MiB, GiB, TiB, K, M, G or T, "
          "as in 512MiB; or a share of the peak, as in 0.5x; or none");
  refused({"--pool", "best-fit(alignmnt=1B)"},
          "best-fit: unknown option 'alignmnt', did you mean 'alignment'? (tidepool policies best-fit lists them)");
  refused({"--assume", "simd"},
          "no assumptions named 'simd', did you mean 'simrd'?; known: checkmate, moccasin, simrd");
  const ProgramResult pool = run_program({"simulate", trace, "--pool", "best-fitt"});
  CHECK(pool.code == 2);
  CHECK(pool.err.starts_with("tidepool: no pool named 'best-fitt', did you mean 'best-fit'?; known: "));
  const ProgramResult policy = run_program({"simulate", trace, "--policy", "lru-swapp"});
  CHECK(policy.code == 2);
  CHECK(policy.err.starts_with("tidepool: no policy named 'lru-swapp', did you mean 'lru-swap'?; known: "));
  const ProgramResult machine = run_program({"simulate", trace, "--machine", "a100-pcie5"});
  CHECK(machine.code == 2);
  CHECK(machine.err.starts_with("tidepool: no machine named 'a100-pcie5', did you mean 'a100-pcie4'?; known: "));
  CHECK(run_program({"simulate", trace, "--polcy", "lru"}).code == 2);
}

TEST_CASE("tidepool simulate --explain prints a line for each decision") {
  const ScratchFolder scratch;
  const std::string trace = small_trace(scratch);
  const std::vector<std::string> run{"simulate",   trace,    "--policy", "none+lru",
                                     "--capacity", "150MiB", "--first",  "--decisions"};
  const ProgramResult result = run_program(run);
  CHECK(result.code == 0);
  CHECK_THAT(result.out,
             StartsWith("iteration 0, op 1 at 1 ms: 100 MiB for buffer 1: lru drops version 0 of buffer 0; frees 100 "
                        "MiB; first of 1 by last use, ns: 0 at 1000000\n"
                        "iteration 0, op 2 at 2 ms: 100 MiB for buffer 0: lru drops version 1 of buffer 1; frees 100 "
                        "MiB; first of 1 by last use, ns: 1 at 2000000\n" +
                        trace + ": none+lru on best-fit"));
}

TEST_CASE("simulate and sweep say how far estimated op times are off, and info what the host takes") {
  const ScratchFolder scratch;
  TraceBuilder build;
  const BufferId a = build.alloc({.size = 1_MiB});
  build.run({.duration = 1_us}, {{a, Access::kWrite}});
  build.run({.duration = 1_us}, {{a, Access::kRead}});
  build.meta() = {{"time", "estimated"}, {"times", "h200"}, {"times_error", "10 %"}};
  const std::string trace = tests::write_trace(scratch, "estimated", build.finish());
  const std::string caveat = trace + ": op times are estimates for h200: a step is off by 10 % in the mean\n";
  CHECK_THAT(run_program({"simulate", trace}).err, StartsWith(caveat));
  const auto swept = run_program({"sweep", trace, "--policy", "none", "--capacity", "1x", "--pool", "ideal"});
  CHECK_THAT(swept.err, StartsWith(caveat));
  CHECK(swept.out.find("0.0 (0.0 to 0.0)\n") != std::string::npos);
  const Json run = Json::parse(run_program({"simulate", trace, "--json"}).out);
  CHECK(run["time_low_ratio"] == 1.0);
  CHECK(run["time_high_ratio"] == 1.0);
  CHECK(run_program({"info", trace}).out.find("\nduration      2 us of ops; a host issues them in about 80 us\n") !=
        std::string::npos);
  // The second op starts when the host has issued it, after 80 us. No plan is faster.
  const std::string out = run_program({"simulate", trace}).out;
  CHECK(out.find("\ntime        81 us, 81 us without policy and limit: +0.00 % (0.00 to 0.00)\n") != std::string::npos);
  CHECK(out.find("\nbound       81 us: no plan with swap,remat is faster (critical-path, limited by compute)") !=
        std::string::npos);
}

TEST_CASE("simulate and sweep warn of op times that are a CPU's") {
  const ScratchFolder scratch;
  TraceBuilder build;
  const BufferId a = build.alloc({.size = 1_MiB});
  build.run({.duration = 1_ms}, {{a, Access::kWrite}});
  build.meta() = {{"time", "measured"}, {"device", "cpu"}};
  const std::string measured = tests::write_trace(scratch, "cpu", build.finish());
  const std::string warning =
      measured +
      ": op times are those of the CPU that recorded them, so copies over a GPU's link look free "
      "in comparison; `tidepool record --torch --times a100-40gb` estimates op times for a GPU\n";
  CHECK_THAT(run_program({"simulate", measured}).err, StartsWith(warning));
  CHECK_THAT(run_program({"sweep", measured, "--policy", "none", "--capacity", "1x"}).err, StartsWith(warning));
  CHECK(run_program({"simulate", small_trace(scratch)}).err.find("op times") == std::string::npos);
}

}  // namespace tidepool::simulate_test
