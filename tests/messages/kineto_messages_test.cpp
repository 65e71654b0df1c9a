// Messages of the importer of Kineto files, word for word.
#include <fmt/format.h>

#include "tests/catch.hpp"
#include "tests/importing.hpp"
#include "traces/summary.hpp"

namespace tidepool::kineto_messages_test {

using tests::complaint;

namespace {

std::string said(std::string_view text) { return complaint(read_kineto, text); }
/// The message about a file whose second event (event 1) is `event`.
std::string said_of(const std::string& event) { return said(R"({"traceEvents": [{"ph": "M"}, )" + event + "]}"); }
std::string kernel(const std::string& rest) { return R"({"ph": "X", "cat": "kernel", "name": "k", )" + rest + "}"; }
std::string memory(const std::string& args) {
  return R"({"ph": "i", "name": "[memory]", "ts": 1, "args": {)" + args + "}}";
}

}  // namespace

TEST_CASE("messages about Kineto files as a whole") {
  CHECK(said("") == "t.log:byte 0: the JSON ends early; expected a complete file");
  CHECK(said("[]") == "t.log:byte 0: '['; expected '{'");
  CHECK(said("{}") == "t.log: no \"traceEvents\"; expected a list, as torch.profiler writes it");
  CHECK(said(R"({"traceEvents": 5})") == "t.log: no \"traceEvents\"; expected a list, as torch.profiler writes it");
  CHECK(said(R"({"traceEvents": [)") == "t.log:byte 17: the JSON ends early; expected a complete file");
  CHECK(said(R"({"traceEvents": [{"ph": "M"})") == "t.log:byte 28: the JSON ends early; expected a complete file");
  CHECK(said(R"({"traceEvents": [{"ph": "M)") == "t.log:byte 26: the JSON ends early; expected a complete file");
  CHECK(said(R"({"traceEvents": [{} {}]})") == "t.log:byte 20: '{'; expected ','");
  CHECK(said(R"({"traceEvents" []})") == "t.log:byte 15: '['; expected ':'");
  CHECK(said(R"({"traceEvents": []})") ==
        "t.log: no activity and no memory of a device; expected a profile of a program on a GPU");
}

TEST_CASE("a Kineto file of too many streams is refused") {
  const auto with_streams = [](int count) {
    std::string events;
    for (int i = 0; i < count; ++i)
      events += (i > 0 ? "," : "") + kernel(fmt::format(R"("ts": 1, "dur": 2, "args": {{"stream": {}}})", i));
    return said(R"({"traceEvents": [)" + events + "]}");
  };
  CHECK(with_streams(4096).empty());
  CHECK(with_streams(4097) == "t.log: more than 4096 streams");
}

TEST_CASE("every truncated Kineto file is refused") {
  const std::string whole = R"({"traceEvents": [)" + kernel(R"("ts": 1, "dur": 2, "args": {"stream": 7})") + "]}";
  CHECK(said(whole) == "");
  for (std::size_t size = 0; size < whole.size(); ++size)
    CHECK(said(whole.substr(0, size)) ==
          fmt::format("t.log:byte {}: the JSON ends early; expected a complete file", size));
}

TEST_CASE("messages about single events of Kineto files") {
  CHECK(said_of("5") == "t.log:event 1: '5'; expected an object");
  CHECK(said_of(R"({"ph"})").starts_with("t.log:event 1: '{\"ph\"}' is not JSON ("));
  CHECK(said_of(kernel(R"("dur": 2)")) == "t.log:event 1: kernel without \"ts\"");
  CHECK(said_of(kernel(R"("ts": "soon")")) == "t.log:event 1: \"ts\" is \"soon\"; expected a time in us");
  CHECK(said_of(kernel(R"("ts": 1e300)")) == "t.log:event 1: \"ts\" is 1e300; expected a time in us");
  CHECK(said_of(kernel(R"("ts": 1, "dur": null)")) == "t.log:event 1: \"dur\" is null; expected a time in us");
  CHECK(said_of(kernel(R"("ts": 1, "args": {"stream": 1.5})")) ==
        "t.log:event 1: \"stream\" is 1.5; expected a whole number");
  CHECK(said_of(kernel(R"("ts": 1, "args": {"device": 256})")) ==
        "t.log:event 1: \"device\" is 256; expected 0 to 255");
  CHECK(said_of(R"({"ph": "X", "cat": "kernel", "ts": 1, "name": 7})") ==
        "t.log:event 1: \"name\" is 7; expected a string");
  CHECK(said_of(R"({"ph": "X", "cat": "kernel", "ts": 1})") == "t.log:event 1: \"name\" is missing; expected a string");
  CHECK(said_of(memory(R"("Bytes": 5)")) == "t.log:event 1: [memory] without \"Device Type\"");
  CHECK(said_of(memory(R"("Device Type": 1)")) == "t.log:event 1: [memory] without \"Bytes\"");
  const std::string huge = memory(R"("Device Type": 1, "Bytes": 2305843009213693952)");
  CHECK(said_of(huge + "," + huge) == "t.log:event 2: the sizes add up to more than 2305843009213693952");
}

TEST_CASE("the message about a device that a Kineto file does not have names its devices") {
  const auto read = [](const Input& input) { read_kineto_device(input, 2); };
  const std::string events =
      kernel(R"("ts": 1, "args": {"device": 0})") + "," + kernel(R"("ts": 1, "args": {"device": 3})");
  CHECK(complaint(read, R"({"traceEvents": [)" + events + "]}") == "t.log: no device 2; the file has 0, 3");
}

TEST_CASE("a file of two profiles is refused, since only the first one would be read") {
  const std::string profile = R"({"traceEvents": [)" + kernel(R"("ts": 1, "dur": 1)") + "]}";
  CHECK(said(profile + "\n").empty());
  CHECK(said(profile + "\n" + profile) == "t.log:byte " + std::to_string(profile.size() + 1) +
                                              ": '{' behind the end of the object; expected one object in a file");
}

TEST_CASE("import says which commands a trace without uses serves") {
  const Trace trace = read_kineto(Input{"t.json", R"({"traceEvents": [)" + kernel(R"("ts": 1, "dur": 1)") + "," +
                                                      memory(R"("Device Type": 1, "Bytes": 5)") + "]}"});
  CHECK(warnings(trace) ==
        std::vector<std::string>{
            "1 or more records were lost",  // the kernel's launch
            "no op says which buffers it uses: pools can be compared, swapping and recomputation cannot"});
}

}  // namespace tidepool::kineto_messages_test
