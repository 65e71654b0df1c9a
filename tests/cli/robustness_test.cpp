#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/catch.hpp"
#include "tests/chain_trace.hpp"
#include "tests/program.hpp"
#include "tests/trace_file.hpp"

namespace tidepool::robustness_test {

using Json = nlohmann::json;

namespace {

/// A plan with copies, and the trace that the plan was made for.
struct Files {
  explicit Files(const ScratchFolder& scratch)
      : trace{tests::write_trace(scratch, "chain", tests::chain_trace(16))}, plan{scratch.file("chain.plan")} {
    const ProgramResult made =
        run_program({"simulate", trace, "--pool", "ideal", "--policy", "lru-swap", "--capacity", "13kB", "--machine",
                     "v100-pcie3", "--overhead-limit", "1000", "--plan-out", plan, "--json"});
    REQUIRE(made.code == 0);
    run = Json::parse(made.out);
  }
  std::string trace, plan;
  Json run;
};

}  // namespace

TEST_CASE("robustness prints the cost of a plan in each scenario, and the worst scenario") {
  const ScratchFolder scratch;
  const Files files{scratch};
  const ProgramResult result = run_program({"robustness", files.plan, "--trace", files.trace, "--by", "0.2", "--json"});
  CHECK(result.code == 0);
  CHECK(result.err.empty());
  const Json told = Json::parse(result.out);
  CHECK(told["predicted_ns"] == files.run["makespan_ns"]);
  REQUIRE(told["scenarios"].size() == 6);
  CHECK(told["scenarios"][0]["name"] == "as planned");
  CHECK(told["scenarios"][0]["makespan_ns"] == files.run["makespan_ns"]);
  CHECK(told["scenarios"][0]["unlimited_ns"] == files.run["baseline_ns"]);
  CHECK(told["scenarios"][1]["name"] == "slower links");
  CHECK(told["scenarios"][1]["makespan_ns"] > told["scenarios"][0]["makespan_ns"]);
  double worst = 0;
  for (const Json& scenario : told["scenarios"]) worst = std::max(worst, scenario["overhead_ratio"].get<double>());
  CHECK(told["worst_overhead_ratio"] == worst);

  const ProgramResult table = run_program({"robustness", files.plan, "--trace", files.trace});
  CHECK(table.code == 0);
  CHECK_THAT(table.out,
             ContainsSubstring("lru-swap on ideal, v100-pcie3, 12.7 KiB; ops and links off by up to 10 %\n"));
  CHECK_THAT(table.out, ContainsSubstring("  worst\n"));
}

TEST_CASE("with a deviation of 0, every scenario is as planned") {
  const ScratchFolder scratch;
  const Files files{scratch};
  const Json told =
      Json::parse(run_program({"robustness", files.plan, "--trace", files.trace, "--by", "0", "--json"}).out);
  for (const Json& scenario : told["scenarios"]) CHECK(scenario["makespan_ns"] == files.run["makespan_ns"]);
}

TEST_CASE("a step that takes no time has no overhead in robustness") {
  const ScratchFolder scratch;
  const std::string trace = scratch.file("lifetimes.csv"), plan = scratch.file("lifetimes.plan");
  std::ofstream{trace} << "id,lower,upper,size\na,0,9,4096\n";
  REQUIRE(run_program({"simulate", trace, "--plan-out", plan}).code == 0);
  CHECK_THAT(run_program({"robustness", plan, "--trace", trace}).out,
             ContainsSubstring("\n  as planned                0 ns          0 ns           -  worst\n"));
  const Json told = Json::parse(run_program({"robustness", plan, "--trace", trace, "--json"}).out);
  CHECK_FALSE(told.contains("worst_overhead_ratio"));
  CHECK(told["scenarios"].size() == 6);
  CHECK_FALSE(told["scenarios"][0].contains("overhead_ratio"));
}

TEST_CASE("bad arguments of robustness are refused with exit code 2 and a message") {
  const ScratchFolder scratch;
  const Files files{scratch};
  const ProgramResult all = run_program({"robustness", files.plan, "--trace", files.trace, "--by", "1"});
  CHECK(all.code == 2);
  CHECK(all.err == "tidepool: --by: 1; expected 0 to 0.99\n");
  std::string text;
  {
    std::ifstream in{files.plan};
    std::getline(in, text);
  }
  std::ofstream{files.plan} << text.replace(text.rfind("\"actions\":"), std::string::npos, "\"actions\":0}\n");
  const ProgramResult nothing = run_program({"robustness", files.plan, "--trace", files.trace});
  CHECK(nothing.code == 2);
  CHECK_THAT(nothing.err, Catch::StartsWith("tidepool: " + files.plan + ": cannot be executed: "));
}

}  // namespace tidepool::robustness_test
