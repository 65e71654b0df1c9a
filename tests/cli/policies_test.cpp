#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "simulator/machine.hpp"
#include "simulator/registry.hpp"
#include "simulator/studies/sweep/result_row.hpp"
#include "tests/catch.hpp"
#include "tests/program.hpp"

namespace tidepool::policies_test {

using Json = nlohmann::json;

TEST_CASE("tidepool policies --json lists every pool and policy with its options") {
  const ProgramResult result = run_program({"policies", "--json"});
  CHECK(result.code == 0);
  CHECK(result.err.empty());
  const Json all = Json::parse(result.out);
  std::vector<std::string> listed, known;
  for (const Json& entry : all) {
    INFO(entry.dump());
    listed.push_back(entry.at("name"));
    CHECK_FALSE(entry.at("summary").get<std::string>().empty());
    CHECK_FALSE(entry.at("paper").get<std::string>().empty());
    const std::string kind = entry.at("kind");
    CHECK(
        (kind == "pool" || kind == "swap" || kind == "remat" || kind == "hybrid" || kind == "order" || kind == "none"));
    for (const Json& option : entry.at("options"))
      for (const char* key : {"name", "default", "unit", "meaning"}) CHECK(option.at(key).is_string());
  }
  for (const PoolInfo* info : all_pools()) known.push_back(info->name);
  for (const PolicyInfo* info : all_policies())
    if (info->name != "scripted") known.push_back(info->name);  // only this test program has it
  CHECK(listed == known);
}

TEST_CASE("tidepool policies NAME shows one") {
  const ProgramResult result = run_program({"policies", "none"});
  CHECK(result.code == 0);
  CHECK(result.out ==
        "none (none)\n  keeps everything; out of memory where that does not fit\n  from: the program as it was "
        "recorded\n");
}

TEST_CASE("tidepool policies of an unknown name is bad input") {
  const ProgramResult result = run_program({"policies", "nome"});
  CHECK(result.code == 2);
  CHECK(result.out.empty());
  CHECK_THAT(result.err,
             ContainsSubstring("tidepool: no pool or policy named 'nome', did you mean 'none'?; known: best-fit, "));
}

TEST_CASE("tidepool machines NAME --file writes a machine file that --machine takes") {
  const ScratchFolder scratch;
  const std::string path = scratch.file("titan.json");
  const ProgramResult result = run_program({"machines", "titan-x-pcie3", "--file"});
  CHECK(result.code == 0);
  std::ofstream{path} << result.out;
  const Machine read = find_machine(path), known = find_machine("titan-x-pcie3");
  CHECK(read.d2h.rate == known.d2h.rate);
  CHECK(read.d2h.latency == known.d2h.latency);
  CHECK(read.capacity == known.capacity);

  const Json listed = Json::parse(run_program({"machines", path, "--json"}).out);
  CHECK(listed.at(0).at("capacity_bytes") == known.capacity.count());
  CHECK(listed.at(0).at("h2d").at("latency_ns") == 9'700);

  const ProgramResult both = run_program({"machines", path, "--file", "--json"});
  CHECK(both.code == 2);
  CHECK(both.err == "tidepool: --json: expected without --file\n");
}

TEST_CASE("tidepool machines --json has the storage of a machine that has one") {
  const ScratchFolder scratch;
  const std::string path = scratch.file("drive.json");
  Json file = Json::parse(run_program({"machines", "titan-x-pcie3", "--file"}).out);
  const auto listed = [&] {
    std::ofstream{path} << file.dump();
    return Json::parse(run_program({"machines", path, "--json"}).out).at(0);
  };
  CHECK_FALSE(listed().contains("storage"));
  file["storage"] = {{"capacity", "1000GB"},
                     {"read", {{"rate", "7GB/s"}, {"latency", "80us"}}},
                     {"write", {{"rate", "5GB/s"}, {"latency", "20us"}}}};
  const Json storage = listed().at("storage");
  CHECK(storage.at("capacity_bytes") == 1'000'000'000'000);
  CHECK(storage.at("read").at("rate_bytes_per_second") == 7'000'000'000);
  CHECK(storage.at("write").at("latency_ns") == 20'000);
}

TEST_CASE("a command that does not exist, or none, is bad usage") {
  const ProgramResult misspelt = run_program({"polices"});
  CHECK(misspelt.code == 2);
  CHECK_THAT(misspelt.err,
             ContainsSubstring("tidepool: no command named 'polices', did you mean 'policies'?; known: "));
  CHECK(run_program({}).code == 2);
  CHECK(run_program({"--version"}).out == fmt::format("tidepool {}\n", build_version()));
}

}  // namespace tidepool::policies_test
