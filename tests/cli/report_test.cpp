#include <nlohmann/json.hpp>

#include "tests/catch.hpp"
#include "tests/effort.hpp"
#include "tests/paths.hpp"
#include "tests/program.hpp"

namespace tidepool::report_test {

using Json = nlohmann::json;

namespace {

const std::string kSample = paths::source_folder() + "/traces/samples/bilstm.tide";

Json content_of_page(const std::string& page) {
  const std::string tag = "id=\"content\">";
  const std::size_t begin = page.find(tag) + tag.size();
  return Json::parse(page.substr(begin, page.find("</script>", begin) - begin));
}

}  // namespace

TEST_CASE("tidepool report shows the results of simulate and sweep") {
  const ScratchFolder scratch;
  const std::string database = scratch.file("r.sqlite"), output = scratch.file("r.html");
  // At half the peak the report explains why a run was out of memory, which takes minutes if the compiler does not
  // optimise.
  const std::string capacity = tests::kOptimised ? "0.5x,1.2x" : "1.1x,1.2x";
  const std::vector<std::string> grid{"--policy", "none,lru-swap", "--capacity", capacity};
  std::vector<std::string> sweep{"sweep", kSample, "-o", database}, simulate{"simulate", kSample, "--json"},
      report{"report", database, kSample, "-o", output};
  for (std::vector<std::string>* command : {&sweep, &simulate, &report})
    command->insert(command->end(), grid.begin(), grid.end());
  REQUIRE(run_program(sweep).code == 0);
  const ProgramResult simulated = run_program(simulate);
  const ProgramResult result = run_program(report);
  CHECK(result.code == 0);
  CHECK(result.err.empty());
  CHECK(result.out.starts_with(output + ": 4 runs in full, 1 frontier, "));
  const Json content = content_of_page(content_of(output));

  std::istringstream lines{simulated.out};
  std::string line;
  std::size_t run = 0;
  for (; std::getline(lines, line); ++run) {
    Json expected = Json::parse(line), told = content["runs"][run]["row"];
    for (const char* wall : {"plan_ns", "actions_per_second"}) expected.erase(wall);
    CHECK(told == expected);
    CHECK(content["runs"][run].contains("autopsy") == (expected["outcome"] == "out_of_memory"));
  }
  CHECK(content["runs"].size() == run);
  CHECK(content["trace"]["name"] == kSample);
  CHECK_THAT(content["command"].get<std::string>(),
             ContainsSubstring("--policy 'none,lru-swap' --capacity '" + capacity + "' -o '" + output + "'"));
  const Json& frontier = content["frontiers"][0];
  CHECK(frontier["capacities"].size() == 2);
  for (const Json& shown : frontier["lines"])
    for (std::size_t i = 0; i < 2; ++i)
      for (const Json& entry : content["runs"]) {
        const Json& row = entry["row"];
        if (row["policy"] != shown["policy"] || row["capacity_bytes"] != frontier["capacities"][i]) continue;
        if (row["outcome"] == "ok")
          CHECK(shown["cells"][i].get<double>() == row["overhead_ratio"].get<double>() - 1);
        else
          CHECK(shown["cells"][i] == row["outcome"]);
      }
}

TEST_CASE("tidepool report of the same input writes the same bytes") {
  const ScratchFolder scratch;
  const std::string output = scratch.file("r.html");
  std::string first;
  for (int i = 0; i < 2; ++i) {
    REQUIRE(run_program({"report", kSample, "--policy", "none,lru-swap", "--capacity", "1.1x", "-o", output}).code ==
            0);
    if (i == 0) first = content_of(output);
  }
  CHECK(content_of(output) == first);
}

TEST_CASE("bad arguments of report are refused with exit code 2 and a message") {
  const ScratchFolder scratch;
  const std::string output = scratch.file("r.html");
  const ProgramResult many = run_program({"report", kSample, "--capacity", "0.1x..1.0x/13", "-o", output});
  CHECK(many.code == 2);
  CHECK(many.err ==
        "tidepool: the lists ask for 13 runs; expected at most 12, as each is shown in full (the database of "
        "a sweep may have any number)\n");
  const std::string results = scratch.file("q.sqlite");
  REQUIRE(run_program({"sweep", kSample, "--policy", "none", "-o", results}).code == 0);
  for (const std::vector<std::string>& inputs : {std::vector<std::string>{results}, {results, kSample}}) {
    std::vector<std::string> words{"report", "--rank", "x", "-o", output};
    words.insert(words.begin() + 1, inputs.begin(), inputs.end());
    const ProgramResult of_job = run_program(words);
    CHECK(of_job.code == 2);
    CHECK(of_job.err == "tidepool: --rank: " + inputs.back() + " is no job file; this option needs one\n");
  }
  CHECK(run_program({"report", scratch.file("missing.tide"), "-o", output}).code == 2);
  CHECK(content_of(output).empty());
}

}  // namespace tidepool::report_test
