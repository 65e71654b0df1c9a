#include <sqlite3.h>

#include <nlohmann/json.hpp>

#include "tests/catch.hpp"
#include "tests/program.hpp"
#include "tests/random_trace.hpp"
#include "traces/jsonl/jsonl.hpp"

namespace tidepool::compare_test {

using Json = nlohmann::json;

namespace {

std::string swept(const ScratchFolder& scratch, const std::string& name, const std::string& policies) {
  const std::string trace = scratch.file("random-1.jsonl"), database = scratch.file(name);
  std::ofstream{trace} << to_jsonl(tests::random_trace(1, 60));
  REQUIRE(run_program({"sweep", trace, "--policy", policies, "--capacity", "0.4x..1.0x/4", "--no-plot", "-o", database})
              .code == 0);
  return database;
}

void change(const std::string& database, const char* sql) {
  sqlite3* handle = nullptr;
  REQUIRE(sqlite3_open(database.c_str(), &handle) == SQLITE_OK);
  CHECK(sqlite3_exec(handle, sql, nullptr, nullptr, nullptr) == SQLITE_OK);
  sqlite3_close(handle);
}

}  // namespace

TEST_CASE("compare ignores wall times and the paths of traces") {
  const ScratchFolder scratch;
  const std::string a = swept(scratch, "a.sqlite", "none,lru-swap"), b = swept(scratch, "b.sqlite", "lru-swap,none");
  change(b, "UPDATE runs SET plan_ns = plan_ns + 7, trace = '/elsewhere', version = '0.0.9'");
  const ProgramResult result = run_program({"compare", a, b});
  CHECK(result.code == 0);
  CHECK(result.out == "identical: 8 runs\n");
}

TEST_CASE("compare names the differences") {
  const ScratchFolder scratch;
  const std::string a = swept(scratch, "a.sqlite", "none,lru-swap"), b = swept(scratch, "b.sqlite", "none,lru-swap");
  change(b,
         "UPDATE runs SET makespan_ns = makespan_ns * 3 / 2 WHERE policy = 'lru-swap' AND capacity_bytes < "
         "ideal_peak_bytes");
  change(b,
         "UPDATE runs SET outcome = 'out_of_memory' WHERE policy = 'lru-swap' AND capacity_bytes >= ideal_peak_bytes");
  change(b, "DELETE FROM runs WHERE policy = 'none' AND capacity_bytes = (SELECT min(capacity_bytes) FROM runs)");
  const ProgramResult result = run_program({"compare", a, b, "--show", "1"});
  CHECK(result.code == 1);
  INFO(result.out);
  CHECK(result.out.starts_with("7 runs in both, "));
  CHECK(
      result.out.find("\nonly in " + a + ": 1, such as none on best-fit, random-1.jsonl, a100-pcie4, 0.4x, seed 1 (") !=
      std::string::npos);
  CHECK(result.out.find("\nok -> out_of_memory: 1\n") != std::string::npos);
  CHECK(result.out.find("\nmakespan_ns ") != std::string::npos);
  CHECK(result.out.find("+50.00 %") != std::string::npos);
  CHECK(result.out.ends_with(
      "\nmost changed\n  lru-swap on best-fit, random-1.jsonl, a100-pcie4, 1x, seed 1; outcome ok -> "
      "out_of_memory\n"));
  const Json json = Json::parse(run_program({"compare", a, b, "--json"}).out);
  CHECK(json.at("identical") == false);
  CHECK(json.at("only_a") == 1);
  CHECK(json.at("outcomes") == Json::parse(R"([{"from":"ok","to":"out_of_memory","runs":1}])"));
  CHECK(json.at("most_changed").at(0).at("b").at("outcome") == "out_of_memory");
}

TEST_CASE("compare can compare two policies, or two runs, of one file") {
  const ScratchFolder scratch;
  const std::string file = swept(scratch, "a.sqlite", "none,lru-swap");
  const ProgramResult policies = run_program({"compare", file + ":policy=none", file + ":policy=lru-swap"});
  CHECK(policies.code == 1);
  CHECK(policies.out.starts_with("4 runs in both, "));
  CHECK(policies.out.find("none on best-fit, random-1.jsonl, a100-pcie4, 0.4x, seed 1 -> lru-swap on best-fit, ") !=
        std::string::npos);
  CHECK(run_program({"compare", file + ":policy=none", file + ":policy=none"}).out == "identical: 4 runs\n");
  const ProgramResult runs =
      run_program({"compare", file + ":policy=none,capacity=1x", file + ":policy=none,capacity=0.4x"});
  CHECK(runs.code == 1);
  CHECK(runs.out.starts_with("1 run in both, 1 of them different\n"));
}

TEST_CASE("compare pairs the only runs of two files only if their settings are equal, or if it is asked for a run") {
  const ScratchFolder scratch;
  const std::string trace = scratch.file("random-1.jsonl"), a = scratch.file("a.sqlite"), b = scratch.file("b.sqlite");
  std::ofstream{trace} << to_jsonl(tests::random_trace(1, 60));
  for (const auto& [database, capacity] : {std::pair{a, "20x"}, std::pair{b, "30x"}})
    REQUIRE(run_program({"sweep", trace, "--capacity", capacity, "--no-plot", "-o", database}).code == 0);
  const ProgramResult files = run_program({"compare", a, b});
  CHECK(files.code == 1);
  CHECK(files.out.starts_with("0 runs in both, 0 of them different\nonly in " + a +
                              ": 1, such as none on best-fit, random-1.jsonl, a100-pcie4, 20x, seed 1 ("));
  CHECK(run_program({"compare", a + ":run=", b}).out == "identical: 1 run\n");
}

TEST_CASE("compare refuses runs that it cannot pair") {
  const ScratchFolder scratch;
  const std::string file = swept(scratch, "a.sqlite", "none,lru-swap");
  const auto refused = [&](const std::string& a, const std::string& b) {
    const ProgramResult result = run_program({"compare", a, b});
    CHECK(result.code == 2);
    CHECK(result.out.empty());
    return result.err;
  };
  CHECK(refused(file + ":polcy=none", file) ==
        "tidepool: " + file +
            ":polcy=none: no column named 'polcy', did you mean 'policy'?; known: run, trace, capacity, trace_hash, "
            "pool, "
            "policy, options, machine, machine_hash, seed, assume, overhead_limit, iterations, steady, count_search, "
            "version\n");
  CHECK(refused(file + ":policy=", file) == "tidepool: " + file + ":policy=: selects no run\n");
  CHECK(refused(file + ":policy=none,x", file) ==
        "tidepool: " + file + ":policy=none,x: 'x' is no choice; expected COLUMN=VALUE, as in policy=dtr\n");
  CHECK(refused(file, file + ":capacity=7").starts_with("tidepool: " + file + ":capacity=7: '7' is not "));
  const std::string ambiguous = refused(file + ":policy=none", file);
  CHECK(ambiguous.starts_with("tidepool: " + file + ": runs "));
  CHECK(ambiguous.ends_with(" would both be compared with the same run; expected a choice between them\n"));
}

}  // namespace tidepool::compare_test
