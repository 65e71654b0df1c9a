#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/catch.hpp"
#include "tests/paths.hpp"
#include "tests/program.hpp"

namespace tidepool::order_test {

using Json = nlohmann::json;

namespace {

const std::string kSamples = paths::source_folder() + "/traces/samples/";

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

TEST_CASE("tidepool order prints the peak after splitting, freeing and reordering") {
  const ProgramResult result = run_program({"order", kSamples + "vgg16.tide"});
  CHECK(result.code == 0);
  CHECK_THAT(result.out,
             Catch::Matchers::EndsWith("vgg16.tide: most bytes alive\n"
                                       "  as recorded, 92 ops                          5.908 GiB\n"
                                       "  an op for each tensor of a list, 185 ops     5.908 GiB\n"
                                       "  each buffer freed after its last use         5.908 GiB\n"
                                       "  in another order (moved)                      5.43 GiB      -8.1 %\n"
                                       "  no order needs less than                     5.421 GiB      -8.2 %\n"
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

TEST_CASE("a plan for the recorded trace brings its order with it") {
  const ScratchFolder folder;
  const std::string plan = folder.file("step.plan");
  const Json run = json_of({"simulate", kSamples + "vgg16.tide", "--policy", "order-peak", "--pool", "ideal",
                            "--capacity", "0.93x", "--first", "--plan-out", plan, "--json"});
  CHECK(run.at("outcome") == "ok");
  CHECK(run.at("overhead_ratio") == 1.0);
  CHECK(run.at("peak_bytes") < 0.93 * run.at("ideal_peak_bytes").get<double>());
  const Json validated = json_of({"validate", plan, "--trace", kSamples + "vgg16.tide", "--detail", "--json"});
  CHECK(validated.at("corrupt_bytes") == 0);
  CHECK(validated.at("order") == "eager");
  CHECK(validated.at("measured_peak_bytes") == run.at("peak_bytes"));
  CHECK_THAT(run_program({"validate", plan, "--trace", kSamples + "vgg16.tide"}).out,
             ContainsSubstring("order-peak on ideal, " + std::to_string(validated.at("actions").get<int>()) +
                               " actions, ops in another order (eager)\n"));

  const ProgramResult other = run_program({"validate", plan, "--trace", kSamples + "unet.tide"});
  CHECK(other.code == 2);
  CHECK_THAT(other.err, ContainsSubstring("step.plan:1: made for trace "));
  const ProgramResult live = run_program({"run", "--plan", plan, "--trace", kSamples + "vgg16.tide", "--", "true"});
  CHECK(live.code == 2);
  CHECK_THAT(live.err, Catch::Matchers::EndsWith("step.plan: runs the ops in another order (eager); expected a plan in "
                                                 "the order of the job\n"));
}

TEST_CASE("simulate --view shows a run in another order, and simulate --decisions refuses it") {
  const std::vector<std::string> run{
      kSamples + "vgg16.tide", "--policy", "order-peak", "--pool", "ideal", "--capacity", "0.93x", "--first"};
  std::vector<std::string> view{"simulate", "--view"}, explain{"simulate"};
  view.insert(view.end(), run.begin(), run.end());
  explain.insert(explain.end(), run.begin(), run.end());
  explain.emplace_back("--decisions");
  CHECK(run_program(view).code == 0);
  const ProgramResult explained = run_program(explain);
  CHECK(explained.code == 1);
  CHECK_THAT(explained.out,
             ContainsSubstring("error: 'order-peak' changes the order of ops, and decisions would name ops "
                               "in the new order; expected the step that 'tidepool order -o' writes\n"));
}

TEST_CASE("tidepool bound has bounds for every order") {
  const Json any = json_of({"bound", kSamples + "vgg16.tide", "--capacity", "0.9x", "--with", "order", "--json"});
  CHECK(any.at("with") == "order");
  CHECK(any.at("feasible") == false);  // no order needs less than 0.918 of the recorded peak
  CHECK(any.at("bounds").back().at("name") == "order-load");
  const Json more = json_of({"bound", kSamples + "vgg16.tide", "--capacity", "0.92x", "--with", "order", "--json"});
  CHECK(more.at("feasible") == true);
}

TEST_CASE("steps that cannot be reordered, and wrong options of tidepool order, are refused") {
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
                              "two.jsonl: 2 streams; expected one: the recording lacks some dependencies between "
                              "streams\n"));
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

}  // namespace tidepool::order_test
