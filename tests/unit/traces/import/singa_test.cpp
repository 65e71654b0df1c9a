#include <string>

#include "tests/catch.hpp"
#include "tests/importing.hpp"

namespace tidepool::singa_test {

using namespace tidepool::literals;
using tests::program;

namespace {

Trace read(std::string_view text) { return read_singa(Input{"t.log", text}); }

}  // namespace

TEST_CASE("a memInfo log gives lifetimes with device addresses") {
  for (const std::string_view text :
       {"Malloc 0x100 9600\nMalloc 0x2700 128\nFree 0x100\nFree 0x2700\n",
        "Malloc 0x100 9600 1512\nMalloc 0x2700 128 1512\nFree 0x100 1513\nFree 0x2700 1514"}) {
    const Trace trace = read(text);
    CHECK(program(trace) == std::vector<std::string>{"alloc 0", "alloc 1", "free 0", "free 1"});
    CHECK(trace.buffer(BufferId{1}).address == 0x2700);
    CHECK(trace.ideal_peak() == 9728_B);
  }
}

TEST_CASE("a vec_block log gives ops that last until the next use, so that they fill the log's time") {
  const Trace trace = read(
      "Malloc 0xa 64 1000\n"
      "Mutable 0xa 64 1010\n"  // 0 to 35, since the first event was at 1000
      "Malloc 0xb 32 1020\n"
      "Read 0xa 64 1035\n"   // 35 to 40
      "Layer 0xb 32 1040\n"  // 40 to 55, the last event
      "Free 0xa 64 1055\n");
  REQUIRE(trace.ops().size() == 3);
  CHECK(trace.op(OpId{0}).duration == 35_ns);
  CHECK(trace.op(OpId{1}).duration == 5_ns);
  CHECK(trace.op(OpId{1}).start == 35_ns);
  CHECK(trace.op(OpId{2}).duration == 15_ns);
  CHECK(trace.uses(OpId{0})[0].access == Access::kReadWrite);
  CHECK(trace.uses(OpId{1})[0].access == Access::kRead);
  CHECK(trace.uses(OpId{2})[0].evidence == Evidence::kInferred);
  CHECK(trace.buffer(BufferId{0}).address == -1);  // the number is the address of an object on the host
  CHECK(trace.text(trace.buffer(BufferId{0}).name) == "0xa");
  CHECK(program(trace) ==
        std::vector<std::string>{"alloc 0", "run Mutable", "alloc 1", "run Read", "run Layer", "free 0"});
}

TEST_CASE("a single number of a use is a size, or a time if it is too large for a size") {
  const Trace trace = read(
      "Malloc 0x1000 64 1515390661841 (data_&size)\n"
      "Mutable 0x1000 64\n"
      "Read 0x1000 1515390661843\n"
      "Free 0x1000 1515390661844\n");
  CHECK(program(trace) == std::vector<std::string>{"alloc 0", "run Mutable", "run Read", "free 0"});
  CHECK(trace.op(OpId{0}).duration == 2_ms);  // a number of this size is a time in ms since 1970
  CHECK(trace.op(OpId{1}).duration == 1_ms);
}

TEST_CASE("pointers that never overlap while they are allocated are device addresses") {
  const std::string apart =
      "Malloc 0x1000 64 1\nMalloc 0x1040 8 2\nRead 0x1000 64 3\nFree 0x1000 64 4\nMalloc 0x1020 8 5\n";
  CHECK(read(apart).buffer(BufferId{1}).address == 0x1040);
  const Trace overlapping = read(apart + "Malloc 0x1044 8 6\n");
  CHECK(overlapping.buffer(BufferId{1}).address == -1);
  CHECK(overlapping.text(overlapping.buffer(BufferId{1}).name) == "0x1040");
}

TEST_CASE("the first index of a vec_run log does not matter") {
  const Trace trace = read("-2 Malloc 0xa 64 10\n-1 Read 0xa 64 11\n0 Free 0xa 64 12\n");
  CHECK(program(trace) == std::vector<std::string>{"alloc 0", "run Read", "free 0"});
}

TEST_CASE("a block that a clipped log uses before its allocation existed before the log") {
  const Trace trace = read("Read 0xa 64 10\nFree 0xb 16 11\nMalloc 0xb 8 12\n");
  REQUIRE(trace.buffers().size() == 3);
  CHECK((trace.buffer(BufferId{0}).born_before && trace.buffer(BufferId{0}).outlives));
  CHECK((trace.buffer(BufferId{1}).born_before && trace.buffer(BufferId{1}).size == 16_B));
  CHECK_FALSE(trace.buffer(BufferId{2}).born_before);
}

TEST_CASE("a step back of the clock takes no time, and is reported") {
  const Trace trace = read("Malloc 0xa 1 100\nRead 0xa 1 110\nRead 0xa 1 70\nRead 0xa 1 75\n");
  CHECK(trace.op(OpId{0}).duration == 10_ns);  // counted from the first event
  CHECK(trace.op(OpId{1}).duration == 5_ns);
  CHECK(trace.op(OpId{2}).duration == 0_ns);
  CHECK(trace.data().losses.clock_residual_ns == 40);
}

TEST_CASE("iterations of a SINGA log are marked") {
  std::string text = "Malloc 0x99 7\n";
  for (int i = 0; i < 4; ++i) text += "Malloc 0x1 10\nMalloc 0x2 20\nFree 0x1\nMalloc 0x3 30\nFree 0x2\nFree 0x3\n";
  const Trace trace = read(text);
  REQUIRE(trace.data().marks.size() == 4);
  CHECK(trace.data().marks[0].event == 1);
  CHECK(trace.data().marks[3].event == 19);
}

}  // namespace tidepool::singa_test
