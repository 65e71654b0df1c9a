// Messages about wrong traces as JSON lines, word for word.
#include "tests/catch.hpp"
#include "traces/jsonl/jsonl.hpp"

namespace tidepool::jsonl_messages_test {

namespace {

/// Reads a header, two buffers (lines 2 and 3) and then these lines, the first of which is line 4.
Trace read_after_two(const std::string& lines) {
  return read_jsonl(Input{"t.jsonl", R"({"tidepool":1}
{"buffer":0,"born_before":true,"size_bytes":100}
{"alloc":1,"size_bytes":10}
)" + lines});
}

Trace read(std::string_view text) { return read_jsonl(Input{"t.jsonl", text}); }

}  // namespace

TEST_CASE("a file that is no trace as JSON lines is refused") {
  CHECK_THROWS_WITH(read(""), R"(t.jsonl: no line; expected {"tidepool":1,...} on the first)");
  CHECK_THROWS_WITH(read("\n{\"a\":1}"), R"(t.jsonl:2: not a trace; expected {"tidepool":1,...} on the first line)");
  CHECK_THROWS_WITH(read("[1]"), "t.jsonl:1: the line is [1]; expected an object");
  // Text is cut between characters: each of these takes two bytes, behind two of JSON.
  std::string umlauts, shown;
  for (int i = 0; i < 40; ++i) umlauts += "\xC3\xA4";
  for (int i = 0; i < 27; ++i) shown += "\xC3\xA4";
  CHECK_THROWS_WITH(read("[\"" + umlauts + "\"]"), "t.jsonl:1: the line is [\"" + shown + "...; expected an object");
  CHECK_THROWS_WITH(read(R"({"tidepool":3})"), "t.jsonl:1: format version 3; this tidepool reads version 1");
  CHECK_THROWS_WITH(read(R"({"tidepool":1,)"), ContainsSubstring("t.jsonl:1: not JSON ("));
}

TEST_CASE("a wrong or missing field is refused with its line") {
  CHECK_THROWS_WITH(read_after_two(R"({"alloc":2,"size_bytes":-5})"),
                    "t.jsonl:4: 'size_bytes' is -5; expected at least 0");
  CHECK_THROWS_WITH(read_after_two(R"({"alloc":2,"size_bytes":"12MB "})"),
                    "t.jsonl:4: 'size_bytes' is \"12MB \"; expected a whole number");
  CHECK_THROWS_WITH(read_after_two(R"({"alloc":2})"), "t.jsonl:4: no 'size_bytes'; it is required");
  CHECK_THROWS_WITH(read_after_two(R"({"alloc":2,"size_bytes":1,"device":70000})"),
                    "t.jsonl:4: 'device' is 70000; expected 0 to 65535");
  CHECK_THROWS_WITH(
      read_after_two(R"({"alloc":2,"size_bytes":1,"kind":"wieght"})"),
      "t.jsonl:4: 'kind' is \"wieght\"; expected unknown, parameter, gradient, optimizer_state, activation, "
      "workspace or input");
  CHECK_THROWS_WITH(read_after_two(R"({"free":1,"free":1})"), "t.jsonl:4: key 'free' is given twice");
  CHECK_THROWS_WITH(read_after_two(R"({"free":1,"after":2})"), "t.jsonl:4: unknown key 'after'; expected free");
  CHECK_THROWS_WITH(read_after_two(R"({"run":"a","random":1})"), "t.jsonl:4: 'random' is 1; expected true or false");
  CHECK_THROWS_WITH(read_after_two(R"({"rum":"a"})"),
                    "t.jsonl:4: unknown kind of line; expected a key run, alloc, free, buffer, forget, mark, outputs, "
                    "output_buffers or losses");
  CHECK_THROWS_WITH(
      read_after_two(R"({"buffer":2,"size_bytes":1})"),
      "t.jsonl:4: 'buffer' without \"born_before\":true; expected 'alloc' for one that comes into being here");
}

TEST_CASE("a wrong use is refused with its line") {
  CHECK_THROWS_WITH(read_after_two(R"({"run":"a","uses":[[1,"reads","schema"]]})"),
                    "t.jsonl:4: 'uses' is \"reads\"; expected read, write, read_write, touch or view");
  CHECK_THROWS_WITH(read_after_two(R"({"run":"a","uses":[[1,"read"]]})"),
                    "t.jsonl:4: a use has 2 parts; expected [buffer, access, evidence] and perhaps a version");
  CHECK_THROWS_WITH(read_after_two(R"({"run":"a","uses":[1]})"), "t.jsonl:4: 'uses' is 1; expected an array in it");
  CHECK_THROWS_WITH(read_after_two(R"({"run":"a","waits_for":[0]})"),
                    "t.jsonl:4: op 0 waits for op 0, which does not come before it");
}

TEST_CASE("an unknown, repeated or missing number is refused") {
  CHECK_THROWS_WITH(read_after_two(R"({"free":9})"),
                    "t.jsonl:4: unknown buffer 9; expected one that an earlier line defines");
  CHECK_THROWS_WITH(read_after_two(R"({"forget":7})"),
                    "t.jsonl:4: unknown version 7; expected one that an earlier line defines");
  CHECK_THROWS_WITH(read_after_two(R"({"alloc":1,"size_bytes":10})"), "t.jsonl:4: buffer 1 is numbered a second time");
  CHECK_THROWS_WITH(read_after_two(R"({"alloc":5,"size_bytes":10})"),
                    "t.jsonl: buffer 5: the file has 3; expected the numbers 0 to 2");
  CHECK_THROWS_WITH(read_after_two(R"({"run":"a","uses":[[1,"write","schema"]],"makes":[1,2]})"),
                    "t.jsonl:4: 'makes' has 2 numbers; the run makes 1 versions");
}

TEST_CASE("an impossible event is refused with its line") {
  CHECK_THROWS_WITH(read_after_two("{\"free\":1}\n{\"free\":1}"),
                    "t.jsonl:5: free of buffer 1, which is not allocated");
  CHECK_THROWS_WITH(read_after_two("{\"free\":1}\n{\"run\":\"a\",\"uses\":[[1,\"read\",\"schema\"]]}"),
                    "t.jsonl:5: op 0 uses buffer 1, which is not allocated");
}

TEST_CASE("a read through a version that was replaced is refused with its op") {
  CHECK_THROWS_WITH(read_after_two(R"({"run":"a","uses":[[0,"read_write","schema"]]}
{"run":"b","uses":[[0,"read","schema",0]]})"),
                    "t.jsonl: op 1 reads version 0 of buffer 0, which is not its content at that point");
}

}  // namespace tidepool::jsonl_messages_test
