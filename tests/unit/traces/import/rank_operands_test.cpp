// Buffers of a job's ranks from execution traces: the call that launched an activity, and the lifetime of its buffers.
#include <fmt/format.h>

#include <array>

#include "tests/catch.hpp"
#include "tests/importing.hpp"
#include "tests/rank_profiles.hpp"
#include "tests/refusal.hpp"
#include "traces/import/torch_et_program.hpp"

namespace tidepool::rank_operands_test {

using tests::program;
using tests::rank_profile;
using tests::refusal;

namespace {

using Names = std::vector<std::string>;

/// An operator of schema 1.0.1 that reads 10 floats of one storage and writes 10 floats of another one.
std::string node(int id, const std::string& name, int thread, int number, int from, int to) {
  return fmt::format(
      R"({{"name": "aten::{}", "id": {}, "rf_id": {}, "tid": {}, "parent": 1, "seq_id": -1, "op_schema":)"
      R"( "aten::{}(Tensor self) -> Tensor", "inputs": [[1, {}, 0, 10, 4, "cuda:0"]], "outputs":)"
      R"( [[1, {}, 0, 10, 4, "cuda:0"]]}})",
      name, id, number, thread, name, from, to);
}

/// An operator of a profile that launches a kernel.
std::string call(const std::string& name, int thread, int number, int begin) {
  return fmt::format(
      R"({{"ph": "X", "cat": "cpu_op", "name": "aten::{0}", "tid": {1}, "ts": {3}, "dur": 9, "args": {{"External id":)"
      R"( {2}}}}}, {{"ph": "X", "cat": "cuda_runtime", "name": "l", "tid": {1}, "ts": {4}, "args": {{"correlation":)"
      R"( {2}}}}}, {{"ph": "X", "cat": "kernel", "name": "k", "ts": {4}, "dur": 2, "args": {{"stream": 7,)"
      R"( "correlation": {2}}}}})",
      name, thread, number, begin, begin + 1);
}

ExecutionTrace three_calls(int thread_of_abs) {
  return parse_execution_trace(Input{"et.json", R"({"schema": "1.0.1", "nodes": [)" + node(2, "relu", 1, 5, 7, 8) +
                                                    "," + node(3, "neg", 1, 6, 8, 9) + "," +
                                                    node(4, "abs", thread_of_abs, 7, 7, 10) + "]}"});
}

/// The calls of the profile's three kernels. Thread 90 calls relu and neg, thread 91 calls abs.
/// @param numbers  the numbers of the calls of abs, relu and neg
std::vector<std::size_t> nodes(const ExecutionTrace& file, const std::array<int, 3>& numbers = {40, 31, 33}) {
  const Kineto profile = parse_kineto(Input{"p.json", R"({"traceEvents": [)" + call("abs", 91, numbers[0], 10) + "," +
                                                          call("relu", 90, numbers[1], 20) + "," +
                                                          call("neg", 90, numbers[2], 40) + "]}"});
  return nodes_of_activities(file, find_program(file, {}), profile);
}

/// A rank with gemm, all-reduce, the host's wait for it, gemm. One call launches both gemms, another one the
/// all-reduce.
Trace rank_of(const std::vector<KinetoOperands::Life>& lives,
              const std::vector<std::vector<KinetoOperands::Use>>& uses) {
  const KinetoOperands operands{lives, uses, {0, 1, 0}};
  return to_rank(parse_kineto(Input{"r.json", rank_profile(0, 200)}), &operands).trace;
}

}  // namespace

TEST_CASE("calls with different numbers in profile and execution trace are matched by their order on each thread") {
  CHECK(nodes(three_calls(2)) == std::vector<std::size_t>{2, 0, 1});
  // In the execution trace, all three are on one thread; no thread of the profile calls these three.
  CHECK(
      refusal([] { nodes(three_calls(1)); }) ==
      "0 of 3 operators of the profile have a number and a name of the execution trace; expected a profile of the same "
      "run");
}

TEST_CASE("calls are not matched by their order if their numbers in the profile are not distinct") {
  for (const std::array<int, 3>& numbers : {std::array{0, 0, 0}, {-1, -1, -1}, {40, 31, 31}, {40, 0, 33}}) {
    INFO(numbers[0] << ", " << numbers[1] << ", " << numbers[2]);
    CHECK(refusal([&] { nodes(three_calls(2), numbers); }) ==
          "0 of 3 operators of the profile have a number and a name of the execution trace; expected a profile of the "
          "same run");
  }
}

TEST_CASE("buffers of a rank live from the first to the last activity of the calls that use them") {
  const Trace trace = rank_of({{.bytes = 100, .born_before = true, .outlives = true},
                               {.bytes = 40},
                               {.bytes = 60, .born_before = true},
                               {.bytes = 8}},
                              {{{0, Access::kRead}, {1, Access::kWrite}}, {{1, Access::kRead}, {2, Access::kRead}}});
  CHECK(program(trace) == Names{"alloc 2", "run gemm", "run ncclKernel_AllReduce", "free 1",
                                "run cudaStreamSynchronize", "run gemm", "free 2"});
  REQUIRE(trace.buffers().size() == 3);  // no op uses the buffer of 8 B
  CHECK(trace.buffers()[0].size == 100_B);
  CHECK(trace.buffers()[1].size == 60_B);
  CHECK(trace.buffers()[2].size == 40_B);
}

TEST_CASE("the first kernel of a call writes its outputs, and its later kernels update them") {
  const Trace trace = rank_of({{.bytes = 40}}, {{{0, Access::kWrite}}, {{0, Access::kRead}}});
  const auto access = [&](std::size_t op) { return trace.uses(OpId{op})[0].access; };
  CHECK(access(0) == Access::kWrite);
  CHECK(access(1) == Access::kRead);
  CHECK(access(3) == Access::kReadWrite);
}

}  // namespace tidepool::rank_operands_test
