#include <fmt/format.h>

#include "tests/catch.hpp"
#include "tests/raw_log.hpp"
#include "tests/trace_file.hpp"
#include "tracer/lower/lower.hpp"

using namespace tidepool;
using namespace tidepool::literals;
using tests::raw_log;

namespace {

Trace operators(const std::string& lines) { return lower(std::vector{raw_log(lines)}, {}, LoweredOps::kOperators); }

std::string tensor(int time, int address, int size) {
  return fmt::format("{{'kind': 'framework_memory', 'action': 'alloc', 'time': {}, 'address': {}, 'size': {}}}\n", time,
                     address, size);
}

/// Launched at `time`, runs for 5 ns.
std::string kernel(int time) {
  return fmt::format(
      "{{'kind': 'kernel', 'name': 'k', 'start': {0}, 'end': {1}, 'context': 1, 'stream': 7, 'correlation': {2}}}\n"
      "{{'kind': 'launch', 'start': {2}, 'end': {2}, 'correlation': {2}, 'thread': 5}}\n",
      time + 10, time + 15, time);
}

std::string op(const std::string& name, int start, int end, const std::string& uses) {
  return fmt::format("{{'kind': 'framework_op', 'name': '{}', 'start': {}, 'end': {}, 'thread': 5, 'uses': [{}]}}\n",
                     name, start, end, uses);
}

}  // namespace

TEST_CASE("operators are the ops where that is asked for, each as long as what it launched") {
  const Trace trace =
      operators(tensor(1, 4096, 64) + op("aten::linear", 10, 30, "['read', 4096]") + tensor(15, 8192, 64) +
                op("aten::addmm", 12, 28, "['read', 4096], ['write', 8192]") + kernel(14) + kernel(20) +
                op("aten::relu_", 40, 45, "['read_write', 8192]") + kernel(60));
  REQUIRE(trace.ops().size() == 2);
  CHECK(trace.text(trace.op(OpId{0}).name) == "aten::addmm");
  CHECK(trace.text(trace.op(OpId{1}).name) == "aten::relu_");
  CHECK(trace.op(OpId{0}).duration == 10_ns);
  CHECK(trace.op(OpId{1}).duration == 0_ns);  // it launched nothing
  REQUIRE(trace.uses(OpId{0}).size() == 2);   // what it wrote was allocated after it began
  for (const Use& use : trace.uses(OpId{0})) CHECK(use.evidence == Evidence::kSchema);
  CHECK(trace.uses(OpId{0})[1].access == Access::kWrite);
  CHECK(trace.data().meta.at("outside_operators") == "5 ns");  // of the kernel that no operator launched
}

TEST_CASE("a capture whose kernels belong to no operators is not read by operators") {
  // A kernel whose launch was not recorded runs for 5 ns, one of the operator for 5 ns: half is still read.
  const std::string lost =
      "{'kind': 'kernel', 'name': 'k', 'start': 50, 'end': 55, 'context': 1, 'stream': 7, 'correlation': 99}\n";
  const std::string mm = tensor(1, 4096, 64) + op("aten::mm", 10, 30, "['read', 4096]");
  CHECK(operators(mm + kernel(14) + lost).op(OpId{0}).duration == 5_ns);
  CHECK_THROWS_WITH(operators(mm + lost),
                    "no operator launched 5 ns of 5 ns of kernels; expected most of them to be known, or --format raw");
}

TEST_CASE("memory that was given out in whole blocks is written in whole blocks") {
  const std::string calls = op("aten::full", 10, 20, "['write', 8192, 32]") + kernel(12);
  CHECK(operators(tensor(1, 8192, 512) + calls).uses(OpId{0})[0].access == Access::kWrite);
  CHECK(operators(tensor(1, 8192, 520) + calls).uses(OpId{0})[0].access == Access::kReadWrite);
}
