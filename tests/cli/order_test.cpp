#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/catch.hpp"
#include "tests/program.hpp"

using namespace tidepool;
using Json = nlohmann::json;

namespace {

const std::string kSamples = std::string{TIDEPOOL_SOURCE_DIR} + "/traces/samples/";

Json json_of(const std::vector<std::string>& arguments) {
  const ProgramResult result = run_program(arguments);
  INFO(result.err);
  REQUIRE(result.code == 0);
  return Json::parse(result.out);
}

}  // namespace

TEST_CASE("tidepool order writes a step that needs less memory and takes as long") {
  const ScratchFolder folder;
  const std::string output = folder.file("vgg16.tide");
  const Json found = json_of({"order", kSamples + "vgg16.tide", "-o", output, "--json"});
  CHECK(found.at("ops") == 92);
  CHECK(found.at("order_peak_bytes") < 0.93 * found.at("ideal_peak_bytes").get<double>());
  CHECK(found.at("bound_bytes") <= found.at("order_peak_bytes"));
  const Json info = json_of({"info", output, "--json"}), before = json_of({"info", kSamples + "vgg16.tide", "--json"});
  CHECK(info.at("ideal_peak_bytes") == found.at("order_peak_bytes"));
  CHECK(info.at("duration_ns") == before.at("duration_ns"));
  CHECK(info.at("ops") == found.at("ops_apart"));
}

TEST_CASE("tidepool order says what splitting, freeing and reordering do to the peak") {
  const ProgramResult result = run_program({"order", kSamples + "vgg16.tide"});
  CHECK(result.code == 0);
  CHECK_THAT(result.out,
             Catch::Matchers::EndsWith("vgg16.tide: most bytes alive\n"
                                       "  as recorded, 92 ops                          5.908 GiB\n"
                                       "  an op for each tensor of a list, 185 ops     5.908 GiB\n"
                                       "  each buffer freed after its last use         5.908 GiB\n"
                                       "  in another order (moved)                      5.43 GiB      -8.1 %\n"
                                       "  no order needs less than                     3.364 GiB     -43.1 %\n"
                                       "  pairs of ops that keep their order: data 229, overwrite 48, random 1\n"));
}

TEST_CASE("a plan for the new order keeps every byte on real memory") {
  const ScratchFolder folder;
  const std::string step = folder.file("step.tide"), plan = folder.file("step.plan");
  REQUIRE(run_program({"order", kSamples + "vgg16.tide", "--rule", "eager", "-o", step}).code == 0);
  REQUIRE(run_program({"simulate", step, "--policy", "lru-swap", "--capacity", "0.8x", "--first", "--plan-out", plan})
              .code == 0);
  const Json validated = json_of({"validate", plan, "--trace", step, "--backend", "host", "--json"});
  CHECK(validated.at("corrupt_bytes") == 0);
}

TEST_CASE("what cannot be reordered is refused") {
  const ScratchFolder folder;
  const ProgramResult rule = run_program({"order", kSamples + "vgg16.tide", "--rule", "last"});
  CHECK(rule.code == 2);
  CHECK_THAT(rule.err, Catch::Matchers::EndsWith(
                           "tidepool: --rule: no rule named 'last', did you mean 'least'?; known: eager, latest, "
                           "least, lowest, recorded\n"));
  const std::string two = folder.file("two.jsonl");
  std::ofstream{two}
      << "{\"tidepool\":1,\"streams\":[\"0\",\"1\"]}\n{\"alloc\":0,\"size_bytes\":1}\n{\"run\":\"op\",\"uses\":[]}\n";
  const ProgramResult streams = run_program({"order", two});
  CHECK(streams.code == 2);
  CHECK_THAT(streams.err, Catch::Matchers::EndsWith(
                              "two.jsonl: 2 streams; expected a step of one: what orders ops of different streams "
                              "is not all recorded\n"));
  const std::string bare = folder.file("bare.jsonl");
  std::ofstream{bare} << "{\"tidepool\":1}\n{\"run\":\"op\",\"uses\":[]}\n";
  const ProgramResult buffers = run_program({"order", bare});
  CHECK(buffers.code == 2);
  CHECK(buffers.err == "tidepool: " + bare + ": no buffers; expected a trace with what is allocated\n");
  const std::string steps = folder.file("steps.jsonl");
  std::ofstream{steps} << "{\"tidepool\":1}\n{\"mark\":\"iteration\"}\n{\"run\":\"op\",\"uses\":[]}\n"
                          "{\"mark\":\"iteration\"}\n{\"run\":\"op\",\"uses\":[]}\n";
  const ProgramResult iterations = run_program({"order", steps});
  CHECK(iterations.code == 2);
  CHECK_THAT(iterations.err, Catch::Matchers::EndsWith(": 2 iterations; expected one step, as 'tidepool import " +
                                                       steps + " --iteration 1 -o step.tide' writes it\n"));
}
