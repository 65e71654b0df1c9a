#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/catch.hpp"
#include "tests/paths.hpp"
#include "tests/program.hpp"

namespace tidepool::pack_test {

using Json = nlohmann::json;

namespace {

/// Buffers of 1, 2 and 1 KiB; one of 3 KiB is allocated when the one of 2 KiB ends.
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

TEST_CASE("tidepool pack --json says trace, load, height, bound and gap") {
  const ScratchFolder folder;
  const std::string path = write_lifetimes(folder);
  const ProgramResult result = run_program({"pack", path, "--json"});
  CHECK(result.code == 0);
  CHECK(result.err.empty());
  const Json json = Json::parse(result.out);
  CHECK(json.at("trace") == path);
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

TEST_CASE("tidepool pack takes lists of pools and capacities, and prints a table that does not fit as a result") {
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

namespace {

std::string write_table(const ScratchFolder& folder, const std::string& text) {
  const std::string path = folder.file("table.csv");
  std::ofstream{path} << text;
  return path;
}

}  // namespace

TEST_CASE("tidepool pack keeps offsets, alignments and gaps of a table") {
  const ScratchFolder folder;
  // b may use the addresses of a only in the gap of a; the offset of c must be a multiple of 8.
  const std::string path = write_table(folder,
                                       "id,lower,upper,size,alignment,offset,gaps\n"
                                       "a,0,9,4,,0,3-6\nb,3,6,4,,,\nc,0,9,1,8,,\n");
  const ProgramResult result = run_program({"pack", path, "--json", "--pool", "one-pass"});
  CHECK(result.code == 0);
  const Json json = Json::parse(result.out);
  CHECK(json.at("load_bytes") == 5);
  CHECK(json.at("height_bytes") == 9);
  CHECK(json.at("outcome") == "ok");
}

TEST_CASE("tidepool pack calls a capacity below the load infeasible") {
  const ScratchFolder folder;
  const std::string path = write_table(folder, "id,lower,upper,size\na,0,2,4\nb,1,3,4\n");
  const ProgramResult result = run_program({"pack", path, "--json", "--pool", "one-pass", "--capacity", "7B"});
  CHECK(result.code == 0);
  const Json json = Json::parse(result.out);
  CHECK(json.at("outcome") == "infeasible");
  CHECK(json.at("message") == "the best layout found needs 8 B, at least 8 B are needed (load); the capacity is 7 B");
}

TEST_CASE("tidepool pack refuses tables that no layout can satisfy, and pools that cannot fix offsets") {
  const ScratchFolder folder;
  const std::string header = "id,lower,upper,size,offset\n";
  const std::string clash = write_table(folder, header + "a,0,9,64,0\nb,7,12,64,32\n");
  ProgramResult result = run_program({"pack", clash, "--pool", "one-pass"});
  CHECK(result.code == 2);
  CHECK(result.err == "tidepool: " + clash +
                          ": buffers 0 and 1: both live at position 7 and are fixed at [0, 64) B and [32, 96) B\n");
  const std::string fixed = write_table(folder, header + "a,0,9,64,0\n");
  result = run_program({"pack", fixed, "--pool", "best-fit"});
  CHECK(result.code == 2);
  CHECK(result.err ==
        "tidepool: pool 'best-fit' decides as requests come and knows no gaps, alignments and offsets beforehand; "
        "expected an offline planner for such a table (tidepool policies lists them)\n");
}

TEST_CASE("tidepool pack --periodic --iterations puts pools and planners side by side") {
  const std::string sample = paths::source_folder() + "/traces/samples/vgg16.tide";
  ProgramResult result =
      run_program({"pack", sample, "--periodic", "--iterations", "10", "--pool", "cnmem,smartpool,one-pass", "--json"});
  CHECK(result.code == 0);
  const std::vector<Json> lines = lines_of(result.out);
  REQUIRE(lines.size() == 3);
  CHECK(lines[0].at("count") == "reserved");
  CHECK(lines[1].at("count") == "counted");
  CHECK(lines[2].at("count") == "planned");
  CHECK(lines[2].at("replay").at("overlaps") == 0);
  CHECK(lines[2].at("replay").at("misses") == 0);
  CHECK(lines[2].at("replay").at("served").get<int>() > 1'000);
  CHECK(lines[2].at("loops").at(0).at("events") == 214);
  const double saved = lines[1].at("bytes").get<double>() / lines[0].at("bytes").get<double>() - 1;
  CHECK(lines[1].at("against_cnmem").get<double>() == saved);
  CHECK(lines[2].at("bytes").get<double>() >= lines[2].at("lower_bound_bytes").get<double>());

  result = run_program({"pack", sample, "--periodic", "--iterations", "10", "--pool", "cnmem,smartpool"});
  CHECK_THAT(result.out, ContainsSubstring("as its authors count"));
  CHECK_THAT(result.out, ContainsSubstring("claims up to 13.3 % less than CnMem"));
  result = run_program({"pack", sample, "--periodic", "--pool", "smartpool"});
  CHECK(result.code == 0);
  CHECK_THAT(result.out, ContainsSubstring("reserved in the whole recording; it finds no iteration"));
  result = run_program({"pack", sample, "--periodic", "--pool", "one-pass"});
  CHECK(result.code == 2);
  CHECK(result.err == "tidepool: " + sample +
                          ": no iteration repeats; expected a recording of several iterations, or --iterations\n");
}

TEST_CASE("pack refuses options without meaning for --periodic, and less than one iteration") {
  const ScratchFolder folder;
  const std::string lifetimes = write_lifetimes(folder);
  const auto said = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments{"pack", lifetimes};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const ProgramResult result = run_program(arguments);
    CHECK(result.code == 2);
    return result.err;
  };
  CHECK(said({"--periodic", "--capacity", "1KiB"}) ==
        "tidepool: --capacity: expected it without --periodic, which finds what the loop needs\n");
  CHECK(said({"--periodic", "--layout-out", folder.file("a.layout")}) ==
        "tidepool: --layout-out: expected it without --periodic: a layout has the places of one step\n");
  CHECK(said({"--iterations", "0"}) == "tidepool: --iterations: 0; expected 1 or more\n");
}

}  // namespace tidepool::pack_test
