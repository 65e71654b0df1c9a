#include <fmt/format.h>
#include <sqlite3.h>

#include <fstream>
#include <initializer_list>
#include <nlohmann/json.hpp>

#include "tests/catch.hpp"
#include "tests/program.hpp"
#include "tests/random_trace.hpp"
#include "traces/job/job.hpp"
#include "traces/jsonl/jsonl.hpp"

namespace tidepool::diff_test {

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

/// Writes a job of two ranks, whose traces have these numbers.
std::string job_of(const ScratchFolder& scratch, const std::string& name, std::initializer_list<int> ranks) {
  Job job;
  for (const int seed : ranks) {
    const std::string file = fmt::format("{}.rank{}.jsonl", name, job.ranks.size());
    const Trace trace = tests::random_trace(static_cast<std::uint64_t>(seed), 60);
    std::ofstream{scratch.file(file)} << to_jsonl(trace);
    job.ranks.push_back({.trace = file, .hash = trace.hash(), .start = {}});
  }
  std::ofstream{scratch.file(name)} << job_file(job);
  return scratch.file(name);
}

}  // namespace

TEST_CASE("diff compares two jobs rank by rank, and tells most of the rank that has changed most") {
  const ScratchFolder scratch;
  const std::string a = job_of(scratch, "a.json", {1, 2}), b = job_of(scratch, "b.json", {1, 3});
  CHECK(run_program({"diff", a, a}).out == "no difference in 2 ranks\n");
  const ProgramResult text = run_program({"diff", a, b});
  CHECK(text.code == 1);
  INFO(text.out);
  CHECK(text.out.starts_with("rank 1 of " + b + " peaks "));
  CHECK(text.out.find("\nother ranks\n  no difference: 60 ops, ") != std::string::npos);
  const Json ranks = Json::parse(run_program({"diff", a, b, "--json"}).out).at("ranks");
  REQUIRE(ranks.size() == 2);
  CHECK((ranks[0].at("identical") == false && ranks[1].at("identical") == true));
  CHECK(run_program({"diff", a, b, "--max-growth", "1000%"}).code == 0);
  CHECK(run_program({"diff", a, job_of(scratch, "c.json", {1})}).code == 2);
}

TEST_CASE("diff ignores wall times and the paths of traces") {
  const ScratchFolder scratch;
  const std::string a = swept(scratch, "a.sqlite", "none,lru-swap"), b = swept(scratch, "b.sqlite", "lru-swap,none");
  change(b, "UPDATE runs SET plan_ns = plan_ns + 7, trace = '/elsewhere', version = '0.0.9'");
  const ProgramResult result = run_program({"diff", a, b});
  CHECK(result.code == 0);
  CHECK(result.out == "identical: 8 runs\n");
}

TEST_CASE("diff names the differences") {
  const ScratchFolder scratch;
  const std::string a = swept(scratch, "a.sqlite", "none,lru-swap"), b = swept(scratch, "b.sqlite", "none,lru-swap");
  change(b,
         "UPDATE runs SET makespan_ns = makespan_ns * 3 / 2 WHERE policy = 'lru-swap' AND capacity_bytes < "
         "ideal_peak_bytes");
  change(b,
         "UPDATE runs SET outcome = 'out_of_memory' WHERE policy = 'lru-swap' AND capacity_bytes >= ideal_peak_bytes");
  change(b, "DELETE FROM runs WHERE policy = 'none' AND capacity_bytes = (SELECT min(capacity_bytes) FROM runs)");
  const ProgramResult result = run_program({"diff", a, b, "--show", "1"});
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
  const Json json = Json::parse(run_program({"diff", a, b, "--json"}).out);
  CHECK(json.at("identical") == false);
  CHECK(json.at("only_a") == 1);
  CHECK(json.at("outcomes") == Json::parse(R"([{"from":"ok","to":"out_of_memory","runs":1}])"));
  CHECK(json.at("most_changed").at(0).at("b").at("outcome") == "out_of_memory");
}

TEST_CASE("diff can compare two policies, or two runs, of one file") {
  const ScratchFolder scratch;
  const std::string file = swept(scratch, "a.sqlite", "none,lru-swap");
  const ProgramResult policies = run_program({"diff", file + ":policy=none", file + ":policy=lru-swap"});
  CHECK(policies.code == 1);
  CHECK(policies.out.starts_with("4 runs in both, "));
  CHECK(policies.out.find("none on best-fit, random-1.jsonl, a100-pcie4, 0.4x, seed 1 -> lru-swap on best-fit, ") !=
        std::string::npos);
  CHECK(run_program({"diff", file + ":policy=none", file + ":policy=none"}).out == "identical: 4 runs\n");
  const ProgramResult runs =
      run_program({"diff", file + ":policy=none,capacity=1x", file + ":policy=none,capacity=0.4x"});
  CHECK(runs.code == 1);
  CHECK(runs.out.starts_with("1 run in both, 1 of them different\n"));
}

TEST_CASE("diff pairs the only runs of two files only if their settings are equal, or if it is asked for a run") {
  const ScratchFolder scratch;
  const std::string trace = scratch.file("random-1.jsonl"), a = scratch.file("a.sqlite"), b = scratch.file("b.sqlite");
  std::ofstream{trace} << to_jsonl(tests::random_trace(1, 60));
  for (const auto& [database, capacity] : {std::pair{a, "20x"}, std::pair{b, "30x"}})
    REQUIRE(run_program({"sweep", trace, "--capacity", capacity, "--no-plot", "-o", database}).code == 0);
  const ProgramResult files = run_program({"diff", a, b});
  CHECK(files.code == 1);
  CHECK(files.out.starts_with("0 runs in both, 0 of them different\nonly in " + a +
                              ": 1, such as none on best-fit, random-1.jsonl, a100-pcie4, 20x, seed 1 ("));
  CHECK(run_program({"diff", a + ":run=", b}).out == "identical: 1 run\n");
}

TEST_CASE("diff says in what runs differ that have no pair, and how to compare them") {
  const ScratchFolder scratch;
  const std::string trace = scratch.file("random-1.jsonl"), a = scratch.file("a.sqlite"), b = scratch.file("b.sqlite");
  std::ofstream{trace} << to_jsonl(tests::random_trace(1, 60));
  for (const auto& [database, limit] : {std::pair{a, "2"}, std::pair{b, "3"}})
    REQUIRE(run_program({"sweep", trace, "--overhead-limit", limit, "--no-plot", "-o", database}).code == 0);
  CHECK(run_program({"diff", a, b})
            .out.ends_with("\nthey differ in overhead_limit, as in 2 and 3; " + a + ":overhead_limit=2 and " + b +
                           ":overhead_limit=3 are compared\n"));
  CHECK(run_program({"diff", a + ":overhead_limit=2", b + ":overhead_limit=3"}).out == "identical: 1 run\n");
}

TEST_CASE("diff refuses runs that it cannot pair") {
  const ScratchFolder scratch;
  const std::string file = swept(scratch, "a.sqlite", "none,lru-swap");
  const auto refused = [&](const std::string& a, const std::string& b) {
    const ProgramResult result = run_program({"diff", a, b});
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

TEST_CASE("diff of two traces says in one line what makes the peak, with its line, and exits with 1") {
  const ScratchFolder folder;
  const auto step = [&](const std::string& name, const std::string& more, int kib) {
    const std::string path = folder.file(name);
    std::ofstream{path} << R"({"tidepool":1,"meta":{"reserved_peak_bytes":")" << kib * 2048 << R"("}})"
                        << "\n"
                        << R"({"alloc":0,"size_bytes":4096,"kind":"input"})"
                        << "\n"
                        << R"({"run":"aten::randn","uses":[[0,"write","schema"]],"line":"train.py:3"})"
                        << "\n"
                        << more << R"({"free":0})"
                        << "\n";
    return path;
  };
  const std::string a = step("a.jsonl", "", 4);
  const std::string b =
      step("b.jsonl",
           R"({"alloc":1,"size_bytes":1048576,"kind":"activation"})"
           "\n"
           R"({"run":"aten::clone","uses":[[0,"read","schema"],[1,"write","schema"]],"line":"train.py:4"})"
           "\n"
           R"({"free":1})"
           "\n",
           4);
  ProgramResult result = run_program({"diff", a, b});
  CHECK(result.code == 1);
  CHECK_THAT(result.out,
             Catch::Matchers::StartsWith(b + " peaks 1 MiB higher than " + a +
                                         " (1.004 MiB for 4 KiB); 1 MiB are new: activation, train.py:4\n"));
  const Json json = Json::parse(run_program({"diff", b, a, "--json"}).out);
  CHECK(json.at("rows").at(0).at("change") == "gone");
  CHECK(json.at("peak_of") == "a");
  result = run_program({"diff", a, a});
  CHECK(result.code == 0);
  CHECK(result.out == "no difference: 1 op, 1 buffer, peak 4 KiB\n");
  result = run_program({"diff", a, step("c.jsonl", "", 6)});
  CHECK(result.code == 1);
  CHECK_THAT(result.out, Catch::Matchers::StartsWith("the same buffers, but " + folder.file("c.jsonl") +
                                                     " reserves 12 KiB for 8 KiB"));

  CHECK(run_program({"diff", a, b, "--max-growth", "1%"}).code == 1);
  CHECK(run_program({"diff", b, a, "--max-growth", "1%"}).code == 0);
  CHECK(run_program({"diff", a, folder.file("c.jsonl"), "--max-growth", "60%"}).code == 0);
  result = run_program({"diff", a, b, "--max-growth", "1"});
  CHECK(result.code == 2);
  CHECK(result.err == "tidepool: --max-growth: '1' is no share; expected a number and %, as in 1%\n");
}

TEST_CASE("diff of two traces says where buffers from before the step end, if nothing else differs") {
  const ScratchFolder scratch;
  const auto write = [&](const std::string& name, const std::string& free) {
    const std::string path = scratch.file(name);
    std::ofstream{path} << R"({"tidepool":1,"meta":{},"streams":["0"]}
{"buffer":0,"born_before":true,"size_bytes":4096,"kind":"gradient"}
{"run":"aten::add_","uses":[[0,"read","schema"]],"line":"train.py:3"}
)" << free << R"({"run":"aten::relu","uses":[],"line":"train.py:4"}
)";
    return path;
  };
  const std::string a = write("a.jsonl", "{\"free\":0}\n"), b = write("b.jsonl", "");
  const ProgramResult result = run_program({"diff", a, b});
  CHECK(result.code == 1);
  CHECK_THAT(result.out,
             Catch::Matchers::StartsWith("the same peak of 4 KiB; 4 KiB live longer: gradient, train.py:3 (to the "
                                         "end of the step in " +
                                         b + ", to op 0 (aten::add_, train.py:3) in " + a + ")\n"));
}

TEST_CASE("diff refuses growth of results, and a trace beside results") {
  const ScratchFolder scratch;
  const std::string database = swept(scratch, "a.sqlite", "none");
  CHECK(run_program({"diff", database, database, "--max-growth", "1%"}).code == 2);
  CHECK(run_program({"diff", database, scratch.file("random-1.jsonl")}).code == 2);
}

}  // namespace tidepool::diff_test
