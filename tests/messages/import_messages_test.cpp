// Messages of the importers of text formats, word for word.
#include "tests/catch.hpp"
#include "tests/importing.hpp"
#include "traces/import/importer.hpp"
#include "traces/import/lifetimes.hpp"

namespace tidepool::import_messages_test {

using Catch::Matchers::StartsWith;
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
  CHECK(said(made + release + "\n" + release) == "t.log:4: releases 'x1', which has been released");
  const std::string copy = R"({"INSTRUCTION":"COPY","DST":"b","SRC":"x1"})" + std::string{"\n"};
  CHECK(said(made + copy + release + "\n" + release) == "t.log:5: releases 'x1', which has been released");
  CHECK(said(made + copy + release + "\n" + mutate("0")) == "t.log:5: reads 'x1', which has been released");
  CHECK(said(made + release + "\n" + mutate("0")) == "t.log:4: reads 'x1', which has been released");
  const std::string back = R"({"INSTRUCTION":"COPY_FROM","DST":"b","SRC":"x1"})";
  CHECK(said(made + copy + release + "\n" + back) == "t.log:5: copies 'x1', which has been released");
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
  CHECK(said("Malloc caf\xe9 8") == "t.log:1: the block is 'caf?', which is not UTF-8; expected a file in UTF-8");
  CHECK(said("Malloc 0x1 -8") == "t.log:1: the size is '-8'; expected a whole number from 0 to 2^61");
  CHECK(said("Malloc 0x1 8 soon") == "t.log:1: the time is 'soon'; expected a whole number from 0 to 2^61");
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
  CHECK(said(header + "caf\xe9,1,2,3\n") == "t.log:2: id 'caf?' is not UTF-8; expected a file in UTF-8");
}

TEST_CASE("messages about lifetimes with alignments, offsets and gaps") {
  const auto said = [](std::string_view text) {
    return complaint([](const Input& input) { read_lifetimes(input, LifetimeColumns::kAll); }, text);
  };
  const std::string known = "id, lower, upper and size, and perhaps alignment, offset, gaps and hint";
  CHECK(said("id,lower,upper,size,colour\n") == "t.log:1: column 'colour'; expected the columns " + known);
  CHECK(said("id,lower,upper,offset\n") == "t.log:1: no column 'size'; expected the columns " + known);
  const std::string aligned = "id,lower,upper,size,alignment,offset\n";
  CHECK(said(aligned + "a,1,2,3,0,\n") ==
        "t.log:2: buffer 'a': alignment is 0; expected at least 1 and at most 2305843009213693952");
  CHECK(said(aligned + "a,1,2,3,2,-4\n") ==
        "t.log:2: buffer 'a': offset is -4; expected at least 0 and at most 2305843009213693952");
  CHECK(said(aligned + "a,1,2,3,16,24\n") ==
        "t.log:2: buffer 'a': offset is 24; expected a multiple of its alignment, 16");
  CHECK(said(aligned + "a,1,2,3,x,\n") == "t.log:2: \"alignment\" is 'x'; expected a whole number");
  CHECK(said(aligned + "a,2,1,3,,\n") == "t.log:2: buffer 'a': lower is 2 and upper is 1; expected lower < upper");
  CHECK(said(aligned + "a,-9223372036854775807,9223372036854775807,3,,\n") ==
        "t.log:2: buffer 'a': lives from -9223372036854775807 to 9223372036854775807; expected less than 2^63 in "
        "between");
  CHECK(said(aligned + "a,1,2,2305843009213693952,,\nb,1,2,1,,\n") ==
        "t.log:3: the sizes add up to more than 2305843009213693952");
  const std::string gaps = "id,lower,upper,size,gaps,hint\n";
  CHECK(said(gaps + "a,0,9,3,3-5@0:4,\n") ==
        "t.log:2: buffer 'a': gap '3-5@0:4' keeps a part of the buffer; expected one without a window, as in 3-5");
  CHECK(said(gaps + "a,0,9,3,35,\n") == "t.log:2: buffer 'a': gap '35'; expected one as in 3-5");
  CHECK(said(gaps + "a,0,9,3,3-x,\n") == "t.log:2: buffer 'a': gap '3-x'; expected one as in 3-5");
  CHECK(said(gaps + "a,0,9,3,5-3,\n") == "t.log:2: buffer 'a': gap '5-3'; expected ascending gaps within [0, 9)");
  CHECK(said(gaps + "a,0,9,3,3-5 4-6,\n") == "t.log:2: buffer 'a': gap '4-6'; expected ascending gaps within [0, 9)");
  CHECK(said(gaps + "a,0,9,3,8-10,\n") == "t.log:2: buffer 'a': gap '8-10'; expected ascending gaps within [0, 9)");
  CHECK(said(gaps + "a,0,9,3,0-4 4-9,\n") == "t.log:2: buffer 'a': the gaps leave nothing of [0, 9)");
  CHECK(said(gaps + "a,0,9,3,,soon\n") == "t.log:2: \"hint\" is 'soon'; expected a whole number");
}

TEST_CASE("messages about files that are no traces") {
  const auto said = [](std::string_view text) {
    return complaint([](const Input& input) { static_cast<void>(find_importer(input, "auto")); }, text);
  };
  CHECK(said("version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 593444864\n") ==
        "t.log: is a Git LFS pointer, which stands for the file: `git lfs pull` brings it");
  CHECK(said("[ 12345][08:00:00:000001][info  ] ----- RMM LOG BEGIN [PTDS DISABLED] -----\n") ==
        "t.log: RMM's debug log has no allocations; set RMM_LOG_FILE to a path, where RMM logs them");
  CHECK(said("heap profile:   3:  7 [ 4: 9] @ heap_v2/524288\n") ==
        "t.log: is a heap profile as text; `pprof -proto PROGRAM FILE > FILE.pb` makes one that can be read");
  CHECK_THAT(said("id;lower;upper;size\n1;0;2;8\n"),
             StartsWith("t.log: has semicolons between its columns; expected commas; known: "));
}

}  // namespace tidepool::import_messages_test
