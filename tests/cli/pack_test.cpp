#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/catch.hpp"
#include "tests/program.hpp"

using namespace tidepool;
using Json = nlohmann::json;

namespace {

/// 1, 2 and 1 KiB; 3 KiB come when the 2 KiB end.
std::string write_lifetimes(const ScratchFolder& folder) {
  const std::string path = folder.file("lifetimes.csv");
  std::ofstream{path} << "id,lower,upper,size\na,0,9,1024\nb,1,3,2048\nc,2,9,1024\nd,3,9,3072\n";
  return path;
}

std::vector<Json> lines_of(const std::string& text) {
  std::vector<Json> lines;
  std::istringstream in{text};
  for (std::string line; std::getline(in, line);) lines.push_back(Json::parse(line));
  return lines;
}

}  // namespace

TEST_CASE("tidepool pack --json says load, height, bound and gap") {
  const ScratchFolder folder;
  const ProgramResult result = run_program({"pack", write_lifetimes(folder), "--json"});
  CHECK(result.code == 0);
  CHECK(result.err.empty());
  const Json json = Json::parse(result.out);
  CHECK(json.at("buffers") == 4);
  CHECK(json.at("load_bytes") == 5'120);
  CHECK(json.at("lower_bound_bytes") == 5'120);
  CHECK(json.at("height_bytes") == 7'168);
  CHECK(json.at("gap").get<double>() == 7'168 / 5'120.0 - 1);
  CHECK(json.at("optimal") == false);
  CHECK(json.at("outcome") == "ok");
  CHECK(json.at("pool") == "best-fit");
  CHECK(json.at("wall_ns").get<std::int64_t>() > 0);
}

TEST_CASE("tidepool pack takes lists of pools and capacities, and does not fitting for an answer") {
  const ScratchFolder folder;
  const ProgramResult result =
      run_program({"pack", write_lifetimes(folder), "--json", "--pool", "ideal,first-fit", "--capacity", "1.2x,none"});
  CHECK(result.code == 0);
  const std::vector<Json> lines = lines_of(result.out);
  REQUIRE(lines.size() == 4);
  CHECK(lines[0].at("outcome") == "ok");
  CHECK(lines[0].at("addresses") == false);
  CHECK(lines[0].at("capacity_bytes") == 6'144);
  CHECK(lines[1].at("outcome") == "out_of_memory");
  CHECK(lines[1].at("message") == "buffer 3 (d) of 3072 B finds no place; the largest hole has 2048 B");
  CHECK_FALSE(lines[1].contains("height_bytes"));
  CHECK(lines[3].at("height_bytes") == 7'168);
}

TEST_CASE("tidepool pack refuses a pool that it does not know") {
  const ScratchFolder folder;
  const ProgramResult result = run_program({"pack", write_lifetimes(folder), "--pool", "best-fitt"});
  CHECK(result.code == 2);
  CHECK_THAT(result.err, ContainsSubstring("no pool named 'best-fitt', did you mean 'best-fit'?"));
}
