#include <fmt/format.h>

#include "tests/catch.hpp"
#include "tests/raw_log.hpp"
#include "tests/trace_file.hpp"
#include "tracer/lower/lower.hpp"
#include "traces/summary.hpp"

namespace tidepool::lower_operators_test {

using namespace tidepool::literals;
using tests::raw_log;

namespace {

Trace iterations_of(const std::string& lines) {
  return lower(std::vector{raw_log(lines)}, {}, LoweredOps::kIterations);
}

std::string range(const std::string& action, int time, int id) {
  return fmt::format(
      "{{'kind': 'range', 'time': {}, 'action': '{}', 'id': {}, 'name': '{}', 'meaning': 'iteration', 'thread': 5}}\n",
      time, action, id, id - 1);
}

Trace operators(const std::string& lines) { return lower(std::vector{raw_log(lines)}, {}, LoweredOps::kOperators); }

std::string tensor(int time, int address, int size) {
  return fmt::format("{{'kind': 'framework_memory', 'action': 'alloc', 'time': {}, 'address': {}, 'size': {}}}\n", time,
                     address, size);
}

/// A kernel that is launched at `time` and runs for 5 ns.
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

TEST_CASE("on request, operators are the ops, each with the time of the kernels that it launched") {
  const Trace trace =
      operators(tensor(1, 4096, 64) + op("aten::linear", 10, 30, "['read', 4096]") + tensor(15, 8192, 64) +
                op("aten::addmm", 12, 28, "['read', 4096], ['write', 8192]") + kernel(14) + kernel(20) +
                op("aten::relu_", 40, 45, "['read_write', 8192]") + kernel(60));
  REQUIRE(trace.ops().size() == 3);
  CHECK(trace.text(trace.op(OpId{0}).name) == "aten::addmm");
  CHECK(trace.text(trace.op(OpId{1}).name) == "aten::relu_");
  CHECK(trace.op(OpId{0}).duration == 10_ns);
  CHECK(trace.op(OpId{1}).duration == 0_ns);  // relu_ launched no kernel
  REQUIRE(trace.uses(OpId{0}).size() == 2);   // its output was allocated after it began
  for (const Use& use : trace.uses(OpId{0})) CHECK(use.evidence == Evidence::kSchema);
  CHECK(trace.uses(OpId{0})[1].access == Access::kWrite);
  CHECK(trace.text(trace.op(OpId{2}).name) == "k");  // no operator launched this kernel
  CHECK(trace.op(OpId{2}).duration == 5_ns);
}

TEST_CASE("work that no operator launched is in the trace, however much it is") {
  // No launch of the last kernel was recorded.
  const std::string lost =
      "{'kind': 'kernel', 'name': 'k', 'start': 50, 'end': 55, 'context': 1, 'stream': 7, 'correlation': 99}\n";
  const std::string mm = tensor(1, 4096, 64) + op("aten::mm", 10, 30, "['read', 4096]");
  CHECK(operators(mm + kernel(14) + lost).ops().size() == 2);
  CHECK(operators(mm + lost + kernel(60)).ops().size() == 3);
}

TEST_CASE("an operator that writes a tensor writes all of the allocator's block for it") {
  // Blocks of PyTorch's allocator are multiples of 512 B, so a use of 32 B counts as one of 512 B. If a block of the
  // capture is not such a multiple, uses count as they are.
  const std::string calls = op("aten::full", 10, 20, "['write', 8192, 32]") + kernel(12);
  CHECK(operators(tensor(1, 8192, 512) + calls).uses(OpId{0})[0].access == Access::kWrite);
  CHECK(operators(tensor(1, 8192, 520) + calls).uses(OpId{0})[0].access == Access::kReadWrite);
}

TEST_CASE("if the hook marks iterations, a capture becomes these iterations, operator by operator") {
  // There is a kernel before the iteration (14), one in it (44), and one after it (94). A tensor is freed after it.
  const std::string lines = tensor(1, 4096, 64) + kernel(14) + range("begin", 30, 1) + tensor(41, 8192, 64) +
                            op("aten::mm", 40, 50, "['read', 4096], ['write', 8192]") + kernel(44) +
                            range("end", 60, 1) + op("aten::mm", 90, 99, "['read', 4096], ['write', 8192]") +
                            kernel(94) +
                            "{'kind': 'framework_memory', 'action': 'free_completed', 'time': 100, 'address': 8192}\n";
  const Trace trace = iterations_of(lines);
  REQUIRE(trace.ops().size() == 1);
  CHECK(trace.text(trace.op(OpId{0}).name) == "aten::mm");
  CHECK(trace.op(OpId{0}).duration == 5_ns);
  CHECK(trace.buffers()[0].born_before);
  CHECK(trace.buffers()[1].outlives);
  CHECK(lower(std::vector{raw_log(lines)}).ops().size() == 3);  // without iterations: all kernels
}

TEST_CASE("if the hook marks iterations, numbered ranges of the job are not taken for iterations") {
  // A range of the job begins in the hook's first iteration and ends in the second; another is still open at the end.
  const auto nvtx = [](const char* action, int time, const char* name) {
    return fmt::format("{{'kind': 'range', 'action': '{}', 'time': {}, 'name': '{}', 'thread': 5}}\n", action, time,
                       name);
  };
  const std::string lines = tensor(1, 4096, 64) + range("begin", 30, 1) +
                            op("aten::relu_", 40, 50, "['read_write', 4096]") + kernel(44) +
                            nvtx("push", 52, "iteration 7") + range("end", 60, 1) + range("begin", 61, 2) +
                            nvtx("pop", 65, "") + op("aten::relu_", 70, 80, "['read_write', 4096]") + kernel(74) +
                            nvtx("push", 82, "iteration 8") + range("end", 90, 2);
  CHECK(summarize(iterations_of(lines)).iterations == 2);
}

TEST_CASE("a capture without a complete iteration of the hook becomes a trace of all its kernels") {
  const std::string begun = tensor(1, 4096, 64) + kernel(14) + range("begin", 30, 1) +
                            op("aten::relu_", 40, 50, "['read_write', 4096]") + kernel(44);
  CHECK(iterations_of(begun).ops().size() == 2);
  CHECK(iterations_of(begun + range("end", 60, 1)).ops().size() == 1);
}

TEST_CASE("an operator that writes a tensor writes the block even if the allocator did not split it for the tensor") {
  // The allocator gave out 3072 B for a tensor of 2048 B.
  const std::string lines =
      range("begin", 2, 1) + tensor(11, 8192, 3072) + op("aten::full", 10, 20, "['write', 8192, 2048]") + kernel(12) +
      "{'kind': 'framework_memory', 'action': 'existing', 'time': 21, 'address': 8192, 'size': 2048, "
      "'category': 'activation'}\n" +
      range("end", 60, 1);
  const Trace trace = iterations_of(lines);
  CHECK(trace.buffers()[0].size == 2048_B);
  CHECK(trace.uses(OpId{0})[0].access == Access::kWrite);
  CHECK(lower(std::vector{raw_log(lines)}).buffers()[0].size == 3072_B);
}

TEST_CASE("a buffer that is used by an operator's kernels and is no tensor is a workspace, which the operator writes") {
  const std::string lines =
      tensor(1, 4096, 64) + tensor(2, 65536, 4096) + op("aten::relu_", 10, 30, "['read_write', 4096]") +
      "{'kind': 'kernel', 'name': 'k', 'start': 21, 'end': 26, 'context': 1, 'stream': 7, 'correlation': 11}\n"
      "{'kind': 'launch', 'start': 11, 'end': 11, 'correlation': 11, 'thread': 5, 'uses': [['touch', 4096], ['touch', "
      "65536]]}\n";
  const Trace trace = operators(lines);
  const std::span uses = trace.uses(OpId{0});
  REQUIRE(uses.size() == 2);
  CHECK(uses[0].access == Access::kReadWrite);
  CHECK(uses[1].access == Access::kWrite);
  CHECK(uses[1].evidence == Evidence::kInferred);
}

TEST_CASE("operators have the line of the user's code that the hook gives") {
  const Trace trace = operators(
      "{'kind': 'framework_op', 'name': 'aten::relu_', 'line': 'model.py:88', 'start': 10, 'end': 20, 'thread': 5}\n" +
      op("aten::relu_", 30, 40, "") + kernel(14) + kernel(34));
  REQUIRE(trace.ops().size() == 2);
  CHECK(trace.text(trace.op(OpId{0}).line) == "model.py:88");
  CHECK_FALSE(trace.op(OpId{1}).line.valid());
}

TEST_CASE("operators have the time and the kind that the hook gives") {
  const std::string priced =
      "{'kind': 'info', 'key': 'times', 'value': 'a100-40gb'}\n" + tensor(1, 4096, 64) +
      "{'kind': 'framework_op', 'name': 'aten::copy_', 'start': 10, 'end': 20, 'thread': 5, 'estimate': 7000, 'work': "
      "'source', 'uses': [['write', 4096]]}\n";
  const Trace alone = lower(std::vector{raw_log(priced)});
  CHECK(alone.op(OpId{0}).duration == 7_us);
  CHECK(alone.op(OpId{0}).kind == OpKind::kSource);
  CHECK(operators(priced + kernel(12)).op(OpId{0}).duration == 7_us);
}

}  // namespace tidepool::lower_operators_test
