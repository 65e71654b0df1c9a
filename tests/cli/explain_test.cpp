#include <fmt/format.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/catch.hpp"
#include "tests/paths.hpp"
#include "tests/pickle_writer.hpp"
#include "tests/program.hpp"

namespace tidepool::explain_test {

using Json = nlohmann::json;
using tests::Pickled;

namespace {

const std::string kSample = paths::source_folder() + "/traces/samples/gpt2.tide";

}  // namespace

TEST_CASE("tidepool explain accounts for every byte at the peak") {
  const ProgramResult result = run_program({"explain", kSample, "--peak", "--json"});
  REQUIRE(result.code == 0);
  const Json json = Json::parse(result.out);
  CHECK(json.at("live_bytes") == json.at("ideal_peak_bytes"));
  for (const char* list : {"kinds", "holders", "buffers"}) {
    std::int64_t sum = 0;
    for (const Json& row : json.at(list)) sum += row.at("bytes").get<std::int64_t>();
    CHECK(sum == json.at("live_bytes"));
  }
  CHECK(json.at("at").at("name") == "aten::_log_softmax_backward_data");
  CHECK(json.at("missing").empty());
  std::int64_t last = 0;
  for (const Json& row : json.at("lowering")) {  // the lowest first; none is below the bytes that the op uses
    CHECK(row.at("peak_bytes") >= std::max(last, json.at("in_use_bytes").get<std::int64_t>()));
    last = row.at("peak_bytes");
  }
}

TEST_CASE("tidepool explain names modules, parameters and ops") {
  const ProgramResult result = run_program({"explain", kSample});
  CHECK(result.code == 0);
  CHECK_THAT(result.out, ContainsSubstring("gpt2.tide: 14.07 GiB alive at the peak, op 242, "
                                           "aten::_log_softmax_backward_data (backward)\n"));
  CHECK_THAT(result.out, ContainsSubstring("activation       12 x transformer.h.*.mlp.act\n"));
  CHECK_THAT(result.out,
             ContainsSubstring("\n   147.2 MiB  transformer.wte.weight\n              since before the trace "
                               "began\n              next used by op 244, aten::mm (lm_head, backward); it "
                               "is still there when the trace ends\n"));
  CHECK_THAT(result.out, ContainsSubstring("lowering the peak\n  4.601 GiB are in use here and cannot go; 9.465 GiB "
                                           "wait for a later use\n"));
  CHECK(result.err.empty());
  CHECK_THAT(run_program({"explain", kSample, "--depth", "2"}).out,
             ContainsSubstring("activation       transformer.h\n"));
}

TEST_CASE("tidepool explain --at looks at one op, and refuses a number that is no op") {
  const ProgramResult result = run_program({"explain", kSample, "--at", "3"});
  CHECK(result.code == 0);
  CHECK_THAT(result.out,
             ContainsSubstring("1.417 GiB alive at op 3, aten::embedding (transformer.wpe, forward)\n10.1 % "
                               "of the peak of 14.07 GiB\n"));
  ProgramResult refused = run_program({"explain", kSample, "--at", "fc1"});
  CHECK(refused.code == 2);
  CHECK(refused.err == "tidepool: --at: 'fc1' is no op of the trace; expected a number from 0 to 630\n");
  refused = run_program({"explain", kSample, "--at", "631"});
  CHECK(refused.err == "tidepool: --at: '631' is no op of the trace; expected a number from 0 to 630\n");
  refused = run_program({"explain", kSample, "--peak", "--at", "3"});
  CHECK(refused.code == 2);
  CHECK(refused.err == "tidepool: --at: expected it without --peak\n");
}

TEST_CASE("tidepool explain and info name the user's lines") {
  const ScratchFolder folder;
  const std::string path = folder.file("step.jsonl");
  std::ofstream{path} << R"({"tidepool":1})"
                      << "\n"
                         R"({"alloc":0,"size_bytes":1024,"kind":"activation"})"
                         "\n"
                         R"({"run":"aten::mm","uses":[[0,"write","schema"]],"module":"fc1","line":"model.py:88"})"
                         "\n"
                         R"({"alloc":1,"size_bytes":512,"kind":"workspace","line":"train.py:7"})"
                         "\n";
  const ProgramResult text = run_program({"explain", path});
  CHECK_THAT(text.out, ContainsSubstring("     1 KiB  activation (buffer 0)\n"
                                         "              since op 0, aten::mm (fc1, model.py:88)\n"));
  CHECK_THAT(text.out, ContainsSubstring("       512 B  workspace (buffer 1)\n"
                                         "              since it was allocated by train.py:7; no op used it yet\n"));
  CHECK_THAT(text.out, ContainsSubstring("workspace        train.py:7\n"));
  const Json json = Json::parse(run_program({"explain", path, "--json"}).out);
  CHECK(json.at("buffers")[0].at("line") == "model.py:88");
  CHECK(json.at("buffers")[0].at("since").at("line") == "model.py:88");
  CHECK(json.at("holders")[1].at("named_by") == "line");

  CHECK_THAT(run_program({"info", path, "--largest", "2"}).out,
             Catch::Matchers::EndsWith("largest buffers\n"
                                       "       1 KiB  activation      buffer 0 (fc1, model.py:88)\n"
                                       "       512 B  workspace       buffer 1 (train.py:7)\n"));
  const Json largest = Json::parse(run_program({"info", path, "--largest", "1", "--json"}).out).at("largest");
  CHECK(largest == Json::parse(R"([{"buffer":0,"bytes":1024,"kind":"activation","name":"fc1, model.py:88"}])"));
}

TEST_CASE("tidepool explain names the data that a trace without ops lacks") {
  const ScratchFolder folder;
  std::ofstream{folder.file("two.jsonl")} << R"({"tidepool":1,"streams":["0"],"strings":[""]})"
                                          << "\n{\"alloc\":0,\"size_bytes\":1024}\n{\"alloc\":1,\"size_bytes\":512}\n"
                                             "{\"free\":0}\n";
  const ProgramResult result = run_program({"explain", folder.file("two.jsonl")});
  CHECK(result.code == 0);
  CHECK_THAT(result.out, ContainsSubstring("1.5 KiB alive at the peak, at event 2 of 3\n"));
  CHECK_THAT(result.err,
             ContainsSubstring("the trace has no ops, so it does not say which op uses a buffer; `tidepool record "
                               "--torch` records them\n"));
  CHECK_THAT(result.out, ContainsSubstring("       1 KiB  buffer 0\n              since event 1\n"
                                           "              freed by event 3\n"));
  CHECK_THAT(result.out, ContainsSubstring("it is still there when the trace ends\n"));
  const Json json = Json::parse(run_program({"explain", folder.file("two.jsonl"), "--json"}).out);
  CHECK(json.at("at") == Json::parse(R"({"event":2,"events":3})"));
  const ProgramResult refused = run_program({"explain", folder.file("two.jsonl"), "--at", "0"});
  CHECK(refused.code == 2);
  CHECK(refused.err == "tidepool: --at: the trace has no ops; expected --peak\n");
}

TEST_CASE("tidepool explain says of a snapshot at which event the peak was, and when") {
  // Event 2 of 5 makes 128 B; event 4 frees 96 B of them, and event 5 makes 16 B.
  const auto event = [](const char* action, std::int64_t address, std::int64_t size, std::int64_t time) {
    return Pickled::dict({{"action", Pickled::text(action)},
                          {"addr", Pickled::whole(address)},
                          {"size", Pickled::whole(size)},
                          {"time_us", Pickled::whole(time)}});
  };
  const Pickled events =
      Pickled::list({event("alloc", 1, 32, 1000), event("alloc", 2, 96, 4000), event("free_requested", 2, 96, 5000),
                     event("free_completed", 2, 96, 6000), event("alloc", 3, 16, 7000)});
  const ScratchFolder folder;
  const std::string path = folder.file("s.pickle");
  std::ofstream{path}
      << Pickled::dict({{"segments", Pickled::list({})}, {"device_traces", Pickled::list({events})}}).pickle();
  const ProgramResult result = run_program({"explain", path});
  CHECK_THAT(result.out, ContainsSubstring("128 B alive at the peak, at event 2 of 5, 3 ms after the first\n"));
  CHECK_THAT(result.out, ContainsSubstring("96 B  buffer 1\n              since event 2\n"
                                           "              freed by event 4\n"));
}

TEST_CASE("tidepool explain joins repeated layers, says what is never used again, and prints no control characters") {
  const ScratchFolder folder;
  const std::string path = folder.file("layers.jsonl");
  std::ofstream out{path};
  out << R"({"tidepool":1,"streams":["0"],"strings":[""]})" << '\n';
  for (int i = 0; i < 3; ++i)
    out << "{\"alloc\":" << i
        << ",\"size_bytes\":100,\"kind\":\"activation\"}\n{\"run\":\"f\\u001b[31m\\u0007\\u0000\","
        << "\"module\":\"layers." << i << ".block_" << i << ".act\",\"phase\":\"forward\",\"uses\":[[" << i
        << ",\"write\",\"schema\"]]}\n";
  out.close();
  const ProgramResult result = run_program({"explain", path});
  CHECK_THAT(result.out, ContainsSubstring("     300 B  100.0 %  activation       3 x layers.*.block_*.act\n"));
  CHECK_THAT(result.out, ContainsSubstring("f\\x1b[31m\\x07\\x00"));
  CHECK(result.out.find_first_of(std::string_view{"\x1b\x07\0", 3}) == std::string::npos);
  CHECK_THAT(result.out, ContainsSubstring("100 B are in use here and cannot go; 0 B wait for a later use\n"
                                           "  200 B are never used again: no backward follows"));
}

TEST_CASE("tidepool explain refuses several devices, and names the file") {
  const ScratchFolder folder;
  const std::string path = folder.file("two.jsonl");
  std::ofstream{path} << R"({"tidepool":1,"streams":["0"],"strings":[""]})"
                      << "\n{\"alloc\":0,\"size_bytes\":8}\n{\"alloc\":1,\"size_bytes\":8,\"device\":1}\n";
  const ProgramResult result = run_program({"explain", path});
  CHECK(result.code == 2);
  CHECK(result.err == "tidepool: " + path +
                          ": the trace is of 2 devices; expected one, as `explain` shows one "
                          "(tidepool import --device keeps one)\n");
}

TEST_CASE("tidepool explain leaves out kinds that hardly lower the peak") {
  const ProgramResult result = run_program({"explain", kSample, "--json"});
  REQUIRE(result.code == 0);
  const Json json = Json::parse(result.out);
  REQUIRE_FALSE(json.at("lowering").empty());
  const auto peak = json.at("ideal_peak_bytes").get<std::int64_t>();
  for (const Json& row : json.at("lowering")) CHECK((peak - row.at("peak_bytes").get<std::int64_t>()) * 1000 >= peak);
}

TEST_CASE("tidepool explain names the line that keeps memory from step to step") {
  const ScratchFolder folder;
  std::string text = R"({"tidepool":1,"meta":{},"streams":["0"]})"
                     "\n";
  for (int i = 0; i < 4; ++i)
    text += fmt::format(R"({{"mark":"iteration","name":"{0}"}}
{{"alloc":{0},"size_bytes":4096,"kind":"activation","line":"train.py:7"}}
{{"run":"aten::relu","uses":[[{0},"write","schema"]],"duration_ns":1000}}
)",
                        i);
  const std::string path = folder.file("leak.jsonl");
  std::ofstream{path} << text;
  ProgramResult result = run_program({"explain", path, "--growth"});
  CHECK(result.code == 0);
  CHECK_THAT(result.out, ContainsSubstring("memory grows by 4 KiB a step, most from train.py:7\n"
                                           "step 1 has never less than 4 KiB, step 3 never less than 12 KiB\n"));
  CHECK_THAT(result.out, ContainsSubstring("4 KiB a step, in 2 of 2  activation       train.py:7\n"));
  const Json json = Json::parse(run_program({"explain", path, "--growth", "--json"}).out);
  CHECK(json.at("growth").at(0).at("cause") == "train.py:7");
  result = run_program({"explain", kSample, "--growth"});
  CHECK(result.code == 2);
  CHECK_THAT(result.err, ContainsSubstring("has fewer than three marked steps; expected a recording of several steps"));
}

}  // namespace tidepool::explain_test
