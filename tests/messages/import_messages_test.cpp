// What the readers of text formats say, word for word.
#include "tests/catch.hpp"
#include "tests/importing.hpp"

using namespace tidepool;
using tests::complaint;

TEST_CASE("messages about DTR logs") {
  const auto said = [](std::string_view text) { return complaint(read_dtr, text); };
  const std::string constant = R"({"INSTRUCTION":"CONSTANT","NAME":"x1"})";
  const std::string memory = R"({"INSTRUCTION":"MEMORY","NAME":"x1","MEMORY":"8"})";
  const std::string made = constant + "\n" + memory + "\n";
  const std::string known =
      "expected one of ANNOTATE, CONSTANT, MEMORY, CALL, ALIAS, MUTATE, COPY, COPY_FROM and RELEASE";
  CHECK(said("") == "t.log: no instruction; expected one JSON object per line");
  CHECK(said("{") == "t.log:1: '{' is not JSON; expected one object per line");
  CHECK(said("[]") == "t.log:1: '[]' is not an object; expected one object per line");
  CHECK(said("{}") == "t.log:1: no \"INSTRUCTION\"; " + known);
  CHECK(said(R"({"INSTRUCTION":"CAL"})") == "t.log:1: unknown instruction 'CAL'; " + known);
  CHECK(said(R"({"INSTRUCTION":"RELEASE"})") == "t.log:1: RELEASE without \"NAME\"");
  CHECK(said(R"({"INSTRUCTION":"RELEASE","NAME":5})") == "t.log:1: \"NAME\" is 5; expected a string");
  CHECK(said(memory) == "t.log:1: MEMORY of 'x1'; expected it right after the CALL or CONSTANT that makes it");
  CHECK(said(constant) == "t.log:1: the log ends; expected MEMORY of 'x1', which the CONSTANT in line 1 makes");
  CHECK(said(constant + "\n" + constant) ==
        "t.log:2: CONSTANT; expected MEMORY of 'x1', which the CONSTANT in line 1 makes");
  const std::string other = constant + "\n" + R"({"INSTRUCTION":"MEMORY","NAME":"x2","MEMORY":"8"})";
  CHECK(said(other) == "t.log:2: MEMORY of 'x2'; expected MEMORY of 'x1', which the CONSTANT in line 1 makes");
  const auto sized = [&](const std::string& size) {
    return said(constant + "\n" + R"({"INSTRUCTION":"MEMORY","NAME":"x1","MEMORY":)" + size + "}");
  };
  CHECK(sized("\"-8\"") == "t.log:2: \"MEMORY\" is \"-8\"; expected a whole number, at least 0");
  CHECK(sized("1.5") == "t.log:2: \"MEMORY\" is 1.5; expected a whole number, at least 0");
  CHECK(sized("9000000000000000000") == "t.log:2: the sizes add up to more than 2305843009213693952");
  CHECK(said(made + made) == "t.log:3: makes 'x1', which exists already; expected a new name");
  CHECK(said(R"({"INSTRUCTION":"COPY","DST":"b","SRC":"a"})") == "t.log:1: copies 'a', which no line before made");
  CHECK(said(R"({"INSTRUCTION":"CALL","NAME":"f","ARGS":["a"],"RESULT":[],"TIME":"1"})") ==
        "t.log:1: reads 'a', which no line before made");
  const std::string call = R"({"INSTRUCTION":"CALL","NAME":"f","ARGS":[],"RESULT":["x1"],"TIME":"1"})";
  CHECK(said(call + "\n" + memory + "\n" + R"({"INSTRUCTION":"ALIAS","NAME":"x1","ALIAS":"0"})") ==
        "t.log:3: \"ALIAS\" names argument 0; the CALL in line 1 has 0");
  CHECK(said(call + "\n" + memory) == "t.log:2: the log ends; expected ALIAS of 'x1', which the CALL in line 1 makes");
  const std::string release = R"({"INSTRUCTION":"RELEASE","NAME":"x1"})";
  const auto mutate = [](const std::string& positions) {
    return R"({"INSTRUCTION":"MUTATE","NAME":"add_","ARGS":["x1"],"MUTATE":[)" + positions + R"(],"TIME":"1"})";
  };
  CHECK(said(made + release + "\n" + release) == "t.log:4: release of 'x1', which has no reference left");
  CHECK(said(made + release + "\n" + mutate("0")) == "t.log:4: reads 'x1', which has been released");
  CHECK(said(made + mutate("1")) == "t.log:3: \"MUTATE\" names argument 1; there are 1");
  CHECK(said(made + mutate("0,0")) == "t.log:3: \"MUTATE\" names argument 0 twice");
}

TEST_CASE("messages about SINGA logs") {
  const auto said = [](std::string_view text) { return complaint(read_singa, text); };
  CHECK(said("") == "t.log: no event; expected lines with Malloc, Free, Read, Mutable or Layer");
  CHECK(said("Alloc 0x1 8") == "t.log:1: unknown event 'Alloc'; expected Malloc, Free, Read, Mutable or Layer");
  CHECK(said("Malloc 0x1") == "t.log:1: 'Malloc 0x1'; expected Malloc, a block, a size and at most a time");
  CHECK(said("Free") == "t.log:1: 'Free'; expected an event, a block, and at most a size and a time");
  CHECK(said("Malloc 0x1 8 5 7") == "t.log:1: 'Malloc 0x1 8 5 7'; expected Malloc, a block, a size and at most a time");
  CHECK(said("Malloc 0x1 -8") == "t.log:1: the size is '-8'; expected a whole number, at least 0");
  CHECK(said("Malloc 0x1 8 soon") == "t.log:1: the time is 'soon'; expected a whole number, at least 0");
  CHECK(said("Malloc 0x1 8\nMalloc 0x1 8") == "t.log:2: Malloc of 0x1, which is allocated since line 1");
  CHECK(said("Malloc 0x1 8\nFree 0x2") == "t.log:2: Free of 0x2, which was not allocated before");
  CHECK(said("Malloc 0x1 8\nFree 0x1\nFree 0x1") == "t.log:3: Free of 0x1, which was freed in line 2");
  CHECK(said("Malloc 0x1 8 1\nFree 0x1 8 2\nRead 0x1 8 3") == "t.log:3: Read of 0x1, which was freed in line 2");
}

TEST_CASE("messages about tables of lifetimes") {
  const auto said = [](std::string_view text) { return complaint(read_interval_csv, text); };
  const std::string header = "id,lower,upper,size\n";
  CHECK(said("") == "t.log: empty; expected a line with the columns id, lower, upper and size");
  CHECK(said("id,lower,upper,size,offset\n") ==
        "t.log:1: column 'offset'; expected the columns id, lower, upper and size");
  CHECK(said("id,lower,upper\n") == "t.log:1: no column 'size'; expected the columns id, lower, upper and size");
  CHECK(said("id,lower,upper,size,size\n") == "t.log:1: column 'size' comes twice");
  CHECK(said(header + "0,1,2\n") == "t.log:2: 3 fields; expected 4");
  CHECK(said(header + "0,1,2,12MB\n") == "t.log:2: \"size\" is '12MB'; expected a whole number");
  CHECK(said(header + "0,1,2,-3\n") == "t.log:2: buffer '0': size is -3; expected at least 0");
  CHECK(said(header + "0,2,2,3\n") == "t.log:2: buffer '0': lower is 2 and upper is 2; expected lower < upper");
  CHECK(said(header + "0,1,2,3\n\n0,1,2,3\n") == "t.log:4: id '0' comes twice");
}
