// Assembly of raw captures into traces, rule by rule.
#include "tracer/lower/lower.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <string>
#include <vector>

#include "tests/catch.hpp"
#include "tests/importing.hpp"
#include "tests/program.hpp"
#include "tests/raw_log.hpp"
#include "tests/refusal.hpp"
#include "tracer/lower/process_log.hpp"
#include "traces/import/importer.hpp"
#include "traces/summary.hpp"

namespace tidepool::lower_test {

using namespace tidepool::literals;
using tests::program;
using tests::raw_log;

namespace {

using Lines = std::vector<std::string>;

Trace lowered(const std::string& lines) { return lower(std::vector{raw_log(lines)}); }

/// JSON lines for memory, for a kernel with its launch, and for an operator.
std::string driver(const char* operation, int time, int address, int size, int correlation = 0) {
  return fmt::format(
      "{{'kind': 'memory', 'operation': '{}', 'memory': 'device', 'time': {}, 'address': {}, 'size': {}, 'device': 0, "
      "'correlation': {}}}\n",
      operation, time, address, size, correlation);
}

std::string tensor(const char* action, int time, int address, int size, const char* category = "unknown") {
  return fmt::format(
      "{{'kind': 'framework_memory', 'action': '{}', 'time': {}, 'address': {}, 'size': {}, 'category': '{}'}}\n",
      action, time, address, size, category);
}

std::string vmm(const char* operation, int time, int address, int size) {
  return fmt::format("{{'kind': 'vmm', 'operation': '{}', 'time': {}, 'address': {}, 'size': {}, 'device': 0}}\n",
                     operation, time, address, size);
}

/// A kernel that is launched at `time` and runs from time + 10 to time + 15. Its correlation id is `time`.
std::string kernel(const std::string& name, int time, const std::string& uses = "", int stream = 7,
                   const char* evidence = "parameter") {
  return fmt::format(
      "{{'kind': 'kernel', 'name': '{0}', 'start': {1}, 'end': {2}, 'context': 1, 'stream': {3}, 'correlation': {4}}}\n"
      "{{'kind': 'launch', 'start': {4}, 'end': {4}, 'correlation': {4}, 'thread': 5, 'evidence': '{6}', 'uses': "
      "[{5}]}}\n",
      name, time + 10, time + 15, stream, time, uses, evidence);
}

std::string op(const std::string& name, int start, int end, const std::string& uses, const char* phase = "unknown") {
  return fmt::format(
      "{{'kind': 'framework_op', 'name': '{}', 'start': {}, 'end': {}, 'thread': 5, 'phase': '{}', 'uses': [{}]}}\n",
      name, start, end, phase, uses);
}

/// The uses of one op, as in "read 0 schema".
Lines uses(const Trace& trace, std::size_t op) {
  Lines lines;
  for (const Use& use : trace.uses(OpId{op})) {
    const VersionId named = use.in.valid() ? use.in : use.out;
    const char* const access[] = {"read", "write", "read_write", "touch", "view"};
    const char* const evidence[] = {"schema", "copy", "const", "instrumented", "parameter", "inferred"};
    lines.push_back(fmt::format("{} {} {}", access[static_cast<int>(use.access)],
                                trace.version(trace.root(named)).buffer.value(),
                                evidence[static_cast<int>(use.evidence)]));
  }
  return lines;
}

}  // namespace

TEST_CASE("a capture's kernels use the buffers that contain their pointers, in the order of the launches") {
  const Trace trace =
      lowered(driver("alloc", 10, 4096, 100) + driver("alloc", 20, 8192, 100) +
              kernel("second", 50, "['touch', 4196], ['touch', 8291]") +  // one past the end; the last byte
              kernel("first", 30, "['read', 4096], ['touch', 4100], ['touch', 8192]") + driver("free", 60, 4096, 0));
  CHECK(program(trace) == Lines{"alloc 0", "alloc 1", "run first", "run second", "free 0"});
  CHECK(uses(trace, 0) == Lines{"touch 0 parameter", "touch 1 parameter"});
  CHECK(uses(trace, 1) == Lines{"touch 1 parameter"});
  CHECK(trace.data().losses.unknown_pointers == 1);
  CHECK(trace.op(OpId{0}).launch == 20_ns);  // counted from the first allocation
  CHECK(trace.op(OpId{0}).start == 30_ns);
  CHECK(trace.op(OpId{0}).duration == 5_ns);
  CHECK(trace.data().streams == Lines{"7"});
}

TEST_CASE("an address that is allocated again is another buffer") {
  const Trace trace =
      lowered(driver("alloc", 1, 4096, 100) + kernel("a", 2, "['touch', 4096]") + driver("free", 3, 4096, 0) +
              driver("alloc", 4, 4096, 50) + kernel("b", 5, "['touch', 4096]"));
  CHECK(program(trace) == Lines{"alloc 0", "run a", "free 0", "alloc 1", "run b"});
  CHECK(uses(trace, 1) == Lines{"touch 1 parameter"});
}

TEST_CASE("an allocation that a profiler reports once for each context is one allocation") {
  const Trace trace = lowered(driver("alloc", 1, 4096, 100, 7) + driver("alloc", 1, 4096, 100, 7) +
                              driver("free", 5, 4096, 100, 8) + driver("free", 6, 4096, 100, 8));
  CHECK(program(trace) == Lines{"alloc 0", "free 0"});
  CHECK(trace.data().losses == Losses{});
}

TEST_CASE("host memory, copies within it and static variables are left out of a capture's trace") {
  const std::string memory = "{'kind': 'memory', 'operation': 'alloc', 'time': 1, 'address': 64, 'size': 8, 'memory': ";
  const Trace trace = lowered(memory + "'pinned'}\n" + memory + "'device_static'}\n" + driver("alloc", 2, 4096, 8) +
                              "{'kind': 'copy', 'copy': 'htoh', 'start': 3, 'end': 4}\n");
  CHECK(program(trace) == Lines{"alloc 0"});
}

TEST_CASE("memory whose allocation was not seen existed before the trace") {
  const Trace trace = lowered(kernel("a", 10) + driver("existing", 20, 4096, 64) + kernel("b", 21, "['touch', 4100]") +
                              driver("free", 30, 8192, 16));
  CHECK(program(trace) == Lines{"run a", "run b", "free 1"});
  CHECK(trace.buffer(BufferId{0}).born_before);
  CHECK(trace.buffer(BufferId{0}).size == 64_B);
  CHECK(trace.buffer(BufferId{1}).born_before);
  CHECK(uses(trace, 1) == Lines{"touch 0 parameter"});
}

TEST_CASE("if tensors are known, an allocation is a buffer only if no tensor is inside") {
  const Trace trace = lowered(
      driver("alloc", 1, 4096, 4096) + driver("alloc", 2, 65536, 512) + tensor("segment_alloc", 3, 4096, 4096) +
      tensor("alloc", 4, 4096, 100) + tensor("alloc", 5, 4608, 200) +
      kernel("gemm", 6, "['touch', 4096], ['touch', 4608], ['touch', 65600]") + tensor("free_requested", 7, 4096, 100) +
      tensor("free_completed", 9, 4096, 100) + tensor("segment_free", 10, 4096, 4096) + driver("free", 11, 4096, 4096));
  CHECK(program(trace) == Lines{"alloc 0", "alloc 1", "alloc 2", "run gemm", "free 1"});
  CHECK(trace.buffer(BufferId{0}).size == 512_B);  // a workspace: no tensor is inside
  CHECK(trace.buffer(BufferId{1}).size == 100_B);
  CHECK(uses(trace, 0) == Lines{"touch 1 parameter", "touch 2 parameter", "touch 0 parameter"});
}

TEST_CASE("tensors identify a segment, even if their clock has them a little earlier than the segment") {
  const Trace trace = lowered(tensor("alloc", 1000, 4096, 100) + driver("alloc", 1200, 4096, 4096));
  CHECK(program(trace) == Lines{"alloc 0"});
  CHECK(trace.buffer(BufferId{0}).size == 100_B);
}

TEST_CASE("facts about a tensor that a framework reports later hold from the tensor's beginning") {
  const Trace trace = lowered(tensor("alloc", 1, 4096, 100) + tensor("alloc", 2, 8192, 100) +
                              tensor("existing", 5, 8192, 100, "gradient") +
                              tensor("existing", 6, 512, 8, "parameter") + tensor("free_requested", 9, 4096, 100));
  CHECK(trace.buffer(BufferId{2}).kind == BufferKind::kGradient);
  CHECK(trace.buffer(BufferId{0}).kind == BufferKind::kParameter);
  CHECK(trace.buffer(BufferId{0}).born_before);
  CHECK(program(trace) == Lines{"alloc 1", "alloc 2", "free 1"});  // without free_completed, the request ends it
}

TEST_CASE("mapped pages are memory, and one unmap ends all mappings in its range") {
  const Trace trace = lowered(vmm("reserve", 1, 4096, 1 << 20) + vmm("map", 2, 4096, 4096) + vmm("map", 3, 8192, 4096) +
                              driver("alloc", 3, 8192, 4096) +  // the same page as the mapping before
                              vmm("map", 4, 65536, 4096) + vmm("unmap", 5, 4096, 8192));
  CHECK(program(trace) == Lines{"alloc 0", "alloc 1", "alloc 2", "free 0", "free 1"});
  CHECK(trace.data().losses == Losses{});
}

TEST_CASE("a tensor that spans mapped pages makes all of these pages segments, but not the page after them") {
  const std::string pages = vmm("map", 1, 4096, 4096) + vmm("map", 2, 8192, 4096) + vmm("map", 3, 12288, 4096);
  const Trace trace = lowered(pages + tensor("alloc", 4, 4096 + 512, 6000) +
                              tensor("free_completed", 5, 4096 + 512, 6000) + vmm("unmap", 6, 4096, 12288));
  CHECK(program(trace) == Lines{"alloc 0", "alloc 1", "free 1", "free 0"});
  CHECK(trace.buffer(BufferId{0}).address == 12288);
  CHECK(trace.buffer(BufferId{1}).size == 6000_B);
  const Trace early =
      lowered(tensor("alloc", 1, 4096 + 512, 6000) + vmm("map", 2, 4096, 4096) + vmm("map", 3, 8192, 4096));
  CHECK(program(early) == Lines{"alloc 0"});
}

TEST_CASE("copies and memsets use exactly their bytes, and writing a part of a buffer does not write all of it") {
  const Trace trace = lowered(
      driver("alloc", 1, 4096, 64) + driver("alloc", 2, 8192, 128) +
      "{'kind': 'memset', 'start': 20, 'end': 21, 'correlation': 5, 'address': 4096, 'size': 64}\n"
      "{'kind': 'api', 'start': 5, 'end': 6, 'correlation': 5}\n"
      "{'kind': 'copy', 'copy': 'dtod', 'start': 30, 'end': 34, 'correlation': 7, 'size': 64, 'from': 4096, 'to': 8192,"
      " 'from_memory': 'device', 'to_memory': 'device'}\n"
      "{'kind': 'api', 'start': 7, 'end': 8, 'correlation': 7}\n"
      "{'kind': 'copy', 'copy': 'htod', 'start': 40, 'end': 44, 'correlation': 9, 'size': 128, 'from': 77, 'to': 8192,"
      " 'from_memory': 'pinned', 'to_memory': 'device'}\n"
      "{'kind': 'api', 'start': 9, 'end': 10, 'correlation': 9}\n");
  CHECK(program(trace) == Lines{"alloc 0", "alloc 1", "run memset", "run memcpy DtoD", "run memcpy HtoD"});
  CHECK(uses(trace, 0) == Lines{"write 0 copy"});
  CHECK(uses(trace, 1) == Lines{"read 0 copy", "read_write 1 copy"});
  CHECK(uses(trace, 2) == Lines{"write 1 copy"});
  CHECK(trace.op(OpId{2}).kind == OpKind::kCopy);
}

TEST_CASE("an operator's schema gives the access of its kernels' parameters") {
  const std::string memory = tensor("alloc", 1, 4096, 64) + tensor("alloc", 2, 8192, 64) + tensor("alloc", 3, 512, 64);
  SECTION("of several kernels, the first one writes the result, and later ones may read it") {
    const Trace trace =
        lowered(memory + op("aten::softmax", 10, 20, "['read', 4096], ['write', 8192]", "forward") +
                kernel("max", 12, "['touch', 4096], ['touch', 8192], ['touch', 512]") +
                kernel("div", 14, "['touch', 4096], ['touch', 8192]") + kernel("other", 25, "['touch', 4096]"));
    CHECK(uses(trace, 0) == Lines{"read 0 schema", "write 1 schema", "touch 2 parameter"});
    CHECK(uses(trace, 1) == Lines{"read 0 schema", "touch 1 parameter"});
    CHECK(uses(trace, 2) == Lines{"touch 0 parameter"});
    CHECK(trace.op(OpId{0}).phase == Phase::kForward);
    CHECK(trace.op(OpId{2}).phase == Phase::kUnknown);
  }
  SECTION("a const parameter stays one") {
    const Trace trace = lowered(memory + op("aten::add_", 10, 20, "['read_write', 4096]") +
                                kernel("check", 12, "['read', 4096]", 7, "const"));
    CHECK(uses(trace, 0) == Lines{"read 0 const"});
  }
  SECTION("a launch that was not scanned has the uses of its operator; those of several launches are guesses") {
    const Trace one =
        lowered(memory + op("aten::relu", 10, 20, "['read', 4096], ['write', 8192]") + kernel("relu", 12));
    CHECK(uses(one, 0) == Lines{"read 0 schema", "write 1 schema"});
    const Trace two = lowered(memory + op("aten::relu", 10, 20, "['read', 4096], ['write', 8192]") + kernel("a", 12) +
                              kernel("b", 13));
    CHECK(uses(two, 0) == Lines{"read 0 inferred", "write 1 inferred"});
    CHECK(uses(two, 1) == Lines{"read 0 inferred", "read_write 1 inferred"});
  }
  SECTION("an id that was pushed around a launch decides its operator, even if its thread is in another one") {
    const Trace trace = lowered(memory + op("aten::relu", 10, 20, "['read', 4096]") +
                                "{'kind': 'framework_op', 'name': 'backward', 'id': 77, 'start': 90, 'end': 95, "
                                "'thread': 6, 'phase': 'backward', 'uses': [['write', 8192]]}\n"
                                "{'kind': 'external', 'id': 77, 'correlation': 12}\n" +
                                kernel("k", 12));
    CHECK(uses(trace, 0) == Lines{"write 1 schema"});
    CHECK(trace.op(OpId{0}).phase == Phase::kBackward);
  }
}

TEST_CASE("a framework's operators are the ops if no launches were recorded") {
  const Trace trace = lowered(
      tensor("alloc", 1, 4096, 64) + tensor("alloc", 3, 8192, 64) + op("aten::linear", 10, 30, "['read', 4096]") +
      op("aten::addmm", 12, 28, "['read', 4096], ['write', 8192]") + op("aten::relu_", 40, 45, "['read_write', 8192]"));
  CHECK(program(trace) == Lines{"alloc 0", "alloc 1", "run aten::addmm", "run aten::relu_"});
  CHECK(uses(trace, 0) == Lines{"read 0 schema", "write 1 schema"});
  CHECK(trace.op(OpId{1}).duration == 5_ns);
}

TEST_CASE("a node of a graph has its uses at each launch of the graph") {
  const auto node = [](int time, int start) {
    return fmt::format(
        "{{'kind': 'kernel', 'name': 'k', 'start': {}, 'end': {}, 'correlation': {}, 'graph': 3, 'graph_node': 99}}\n"
        "{{'kind': 'api', 'name': 'cuGraphLaunch', 'start': {}, 'end': {}, 'correlation': {}}}\n",
        start, start + 1, time, time, time + 1, time);
  };
  const Trace trace =
      lowered(driver("alloc", 1, 4096, 64) +
              "{'kind': 'launch', 'graph_node': 99, 'evidence': 'parameter', 'uses': [['touch', 4096]]}\n" +
              node(10, 50) + node(20, 60));
  REQUIRE(trace.ops().size() == 2);
  CHECK(uses(trace, 0) == Lines{"touch 0 parameter"});
  CHECK(uses(trace, 1) == Lines{"touch 0 parameter"});
}

TEST_CASE("waits for events put kernels of different streams in order") {
  const Trace trace = lowered(
      kernel("produce", 10, "", 7) +
      "{'kind': 'event_record', 'time': 11, 'context': 1, 'stream': 7, 'event': 4, 'sync_id': 1}\n"
      "{'kind': 'sync', 'sync': 'stream_waits_event', 'start': 12, 'end': 13, 'context': 1, 'stream': 8, 'event': 4, "
      "'sync_id': 1}\n" +
      kernel("consume", 20, "", 8) + kernel("free", 21, "", 9) +
      "{'kind': 'sync', 'sync': 'stream', 'start': 22, 'end': 60, 'context': 1, 'stream': 8}\n" +
      kernel("after", 61, "", 9));
  REQUIRE(trace.data().orders.size() == 2);
  CHECK(trace.data().orders[0] == Order{OpId{0}, OpId{1}});
  CHECK(trace.data().orders[1] == Order{OpId{1}, OpId{3}});
}

TEST_CASE("marks begin iterations, and pushes and pops give phases and modules") {
  const auto range = [](const char* action, int time, const char* meaning, const char* name) {
    return fmt::format("{{'kind': 'range', 'action': '{}', 'time': {}, 'meaning': '{}', 'name': '{}', 'thread': 5}}\n",
                       action, time, meaning, name);
  };
  const Trace trace =
      lowered(range("mark", 1, "iteration", "0") + range("push", 2, "phase", "forward") +
              range("push", 3, "module", "conv1") + kernel("a", 4) + range("pop", 5, "range", "") + kernel("b", 6) +
              range("pop", 7, "range", "") + range("mark", 8, "iteration", "1") + kernel("c", 9));
  CHECK(trace.op(OpId{0}).phase == Phase::kForward);
  CHECK(trace.text(trace.op(OpId{0}).module) == "conv1");
  CHECK(trace.op(OpId{1}).phase == Phase::kForward);
  CHECK(trace.text(trace.op(OpId{1}).module).empty());
  CHECK(trace.op(OpId{2}).phase == Phase::kUnknown);
  CHECK(summarize(trace).iterations == 2);
}

TEST_CASE("without marks, the repetition of kernels gives the iterations") {
  std::string lines;
  for (int k = 0; k < 15; ++k) lines += kernel(fmt::format("k{}", k % 3), 10 * k);
  CHECK(summarize(lowered(lines)).iterations == 5);
}

TEST_CASE("in a training job without marks, the steps are found, not the repetitions within and around them") {
  // As in a job of PyTorch, parameters are copied and filled, the first step makes the optimizer's state, and a test
  // follows the last step.
  std::string lines;
  int time = 0;
  const auto run = [&](const std::string& name, int times = 1) {
    for (int i = 0; i < times; ++i) lines += kernel(name, time += 10);
  };
  for (int layer = 0; layer < 20; ++layer) run("copy"), run("fill", 2);
  for (int step = 0; step < 3; ++step) {
    for (int layer = 0; layer < 20; ++layer) run("conv"), run("norm"), run("relu");
    run("loss");
    for (int layer = 0; layer < 20; ++layer) run("relu_grad"), run("norm_grad"), run("conv_grad", 2);
    if (step == 0) run("fill", 80);
    run("update", 7);
  }
  for (int layer = 0; layer < 20; ++layer) run("conv"), run("norm_infer"), run("relu");
  const Trace trace = lowered(lines);
  std::vector<std::string> begins;
  for (const Mark& mark : trace.data().marks) begins.push_back(fmt::format("{} {}", mark.event, trace.text(mark.name)));
  CHECK(begins == Lines{"60 0", "288 1", "436 2", "584 after 2"});
}

TEST_CASE("files of different clocks are joined, and the losses have the error of linear interpolation") {
  // In ns: at its times 0 and 2000, the device's clock is 1000 behind the common one; at its time 1000, it is 1003
  // behind. The header does not count: its times were not read at the same moment.
  const raw::Log device = raw_log(
      "{'kind': 'clock', 'time': 0, 'monotonic_raw': 1000}\n{'kind': 'clock', 'time': 1000, 'monotonic_raw': 2003}\n"
      "{'kind': 'clock', 'time': 2000, 'monotonic_raw': 3000}\n" +
          kernel("early", 100, "['touch', 4096]") + kernel("late", 1500, "['touch', 4096]"),
      "'process': 1, 'source': 'cupti', 'clock': 'cupti', 'time': 0, 'monotonic_raw': 1500");
  const raw::Log host = raw_log(
      tensor("alloc", 1050, 4096, 64) + tensor("free_completed", 2400, 4096, 64) + tensor("alloc", 2450, 4096, 32),
      "'process': 1, 'source': 'torch', 'clock': 'monotonic_raw'");
  const Trace trace = lower(std::vector{device, host});
  CHECK(program(trace) == Lines{"alloc 0", "run early", "free 0", "alloc 1", "run late"});
  CHECK(trace.op(OpId{1}).launch == Nanos{2501 - 1050});  // 2003 + 500 * 997 / 1000
  CHECK(trace.op(OpId{1}).duration == 5_ns);
  CHECK(trace.data().losses.clock_residual_ns == 3);
}

TEST_CASE("times beyond the range of the common clock are refused") {
  raw::Log log;
  log.path = "t.raw";
  log.header.clock = raw::Clock::kCupti;
  constexpr std::int64_t kMost = std::int64_t{1} << 61;
  log.header.time = -kMost;
  log.header.monotonic_raw = kMost;
  const ClockFit clock{log};
  CHECK(clock.common(-kMost) == kMost);
  CHECK(tests::refusal([&] { clock.common(kMost); }) ==
        "t.raw: time 2305843009213693952 is 6917529027641081856 on the common clock; expected -2^61 to 2^61");
}

TEST_CASE("a process that becomes another program has different memory, streams and launches from then on") {
  const auto header = [](const char* source, int time) {
    return fmt::format("'process': 1, 'source': '{0}', 'clock': 'monotonic_raw', 'time': {1}, 'monotonic_raw': {1}",
                       source, time);
  };
  // Both programs get the same address, stream and correlation id.
  const auto job = [&](const char* name, int size, int time) {
    return driver("alloc", time, 4096, size, 1) +
           fmt::format(
               "{{'kind': 'kernel', 'name': '{}', 'start': {}, 'end': {}, 'context': 1, 'stream': 7, "
               "'correlation': 5}}\n{{'kind': 'launch', 'start': {}, 'correlation': 5, 'uses': [['touch', "
               "4096]]}}\n",
               name, time + 20, time + 30, time + 10);
  };
  const raw::Log first = raw_log(job("before", 64, 110), header("cupti", 100));
  const raw::Log second = raw_log(job("after", 32, 210), header("cupti", 200));
  const Trace trace = lower(std::vector{second, first});
  CHECK(program(trace) == Lines{"alloc 0", "run before", "free 0", "alloc 1", "run after"});
  CHECK(uses(trace, 0) == Lines{"touch 0 schema"});
  CHECK(uses(trace, 1) == Lines{"touch 1 schema"});
  CHECK(trace.data().streams == Lines{"7", "7 of context 1 of process 1"});

  // A hook that begins after the first program's last record, before the second uses the device, belongs to the second.
  const raw::Log hook =
      raw_log(tensor("alloc", 215, 4096, 16) + tensor("free_completed", 260, 4096, 16), header("torch", 195));
  const std::vector logs{first, hook, second};
  const std::vector<ProcessLog> programs = by_process(logs);
  REQUIRE(programs.size() == 2);
  CHECK(programs[0].files.size() == 1);
  CHECK(programs[0].ends == 195);
  CHECK(programs[1].files.size() == 2);
  CHECK(!programs[1].ends);
  // A hook that begins while the first program still runs kernels belongs to the first.
  const std::vector early{first, raw_log("", header("torch", 130)), second};
  CHECK(by_process(early)[0].files.size() == 2);
}

TEST_CASE("a stream whose context was not recorded has the context of its kernels") {
  const std::vector logs{
      raw_log("{'kind': 'stream', 'handle': 77, 'stream': 7, 'context': 4294967295}\n" + kernel("k", 5))};
  const std::vector<ProcessLog> processes = by_process(logs);
  CHECK(processes.at(0).streams.at(77).context == 1);
  CHECK(processes.at(0).streams.at(77).stream == 7);
}

TEST_CASE("the losses of a capture are reported in its trace") {
  raw::Log log = raw_log(
      "{'kind': 'loss', 'loss': 'dropped_records', 'count': 5}\n"
      "{'kind': 'loss', 'loss': 'unknown_pointers', 'count': 2}\n"
      "{'kind': 'kernel', 'name': 'k', 'correlation': 3}\n"
      "{'kind': 'launch', 'start': 9, 'correlation': 3, 'unknown_pointers': 4}\n" +
      driver("alloc", 1, 4096, 64) + driver("free", 2, 4096, 64, 1) + driver("free", 3, 4096, 64, 2));
  log.header.lost_records = 10;
  log.header.closed = 0;
  log.cut_off_bytes = 7;
  const Trace trace = lower(std::vector{log});
  CHECK(trace.data().losses.dropped_records == 16);  // 5, 10, and a kernel without times
  CHECK(trace.data().losses.unknown_pointers == 6);
  CHECK(trace.data().losses.unmatched_frees == 1);
  CHECK(warnings(trace)[0] ==
        "recovered what was written before the job ended: 1 of 1 files unfinished, 7 bytes cut off");
}

TEST_CASE("the trace counts launches that were not scanned, and the profiler's own time") {
  const Trace trace = lowered(kernel("a", 10) + "{'kind': 'launch', 'correlation': 5, 'flags': 2}\n" +
                              "{'kind': 'overhead', 'start': 100, 'end': 400, 'name': 'flush'}\n");
  CHECK(warnings(trace)[0] == "lacks what 1 of 2 launches use: their parameters were not read");
  CHECK(trace.data().meta.at("profiler_overhead") == "300 ns");
}

TEST_CASE("kinds of buffers follow from the times of their uses") {
  std::string lines = tensor("existing", 1, 4096, 64) + tensor("existing", 1, 8192, 64);
  const auto alloc = [&](int time, int address) { lines += tensor("alloc", time, address, 64); };
  const auto run = [&](int time, const char* phase, const std::string& list) {
    lines += op("op", time, time + 1, list, phase);
  };
  alloc(2, 512), alloc(3, 1024), alloc(4, 2048), alloc(5, 16384);
  run(10, "forward", "['read', 4096], ['write', 512], ['write', 16384]");
  run(20, "backward", "['read', 512], ['read', 4096], ['write', 1024]");
  run(30, "backward", "['write', 2048]");
  run(40, "optimizer", "['read', 1024], ['read_write', 8192], ['read_write', 4096]");
  lines += tensor("free_completed", 50, 16384, 64);
  const Trace trace = lowered(lines);
  const auto kind = [&](std::int64_t address) {
    for (const Buffer& buffer : trace.buffers())
      if (buffer.address == address) return buffer.kind;
    return BufferKind::kUnknown;
  };
  CHECK(kind(4096) == BufferKind::kParameter);
  CHECK(kind(8192) == BufferKind::kOptimizerState);
  CHECK(kind(512) == BufferKind::kActivation);
  CHECK(kind(1024) == BufferKind::kGradient);
  CHECK(kind(16384) == BufferKind::kWorkspace);
  CHECK(kind(2048) == BufferKind::kUnknown);  // outlives the trace, and no op reads it
  CHECK(trace.data().meta.at("inferred_kinds") == "5");
}

TEST_CASE("kernels of several processes use their own memory") {
  const std::string both = driver("alloc", 1, 4096, 64) + kernel("k", 5, "['touch', 4096]");
  const Trace trace =
      lower(std::vector{raw_log(both), raw_log(both, "'process': 2, 'source': 'cupti', 'clock': 'monotonic_raw'")});
  CHECK(trace.buffers().size() == 2);
  CHECK(trace.data().losses == Losses{});
  CHECK(trace.data().streams.size() == 2);
  CHECK(uses(trace, 0) != uses(trace, 1));
}

TEST_CASE("the last iteration of a job of several processes ends when every process has ended it") {
  const auto step = [](int process, int begin, int op, int end) {
    return raw_log(
        fmt::format(
            "{{'kind': 'framework_memory', 'time': 1, 'action': 'existing', 'address': 4096, 'size': 64}}\n"
            "{{'kind': 'range', 'time': {}, 'action': 'begin', 'id': 1, 'meaning': 'iteration', 'name': '0'}}\n"
            "{{'kind': 'framework_op', 'name': 'relu', 'start': {}, 'end': {}, 'uses': [['read_write', 4096]]}}\n"
            "{{'kind': 'range', 'time': {}, 'action': 'end', 'id': 1}}\n",
            begin, op, op + 1, end),
        fmt::format("'process': {}, 'source': 'torch', 'clock': 'monotonic_raw'", process));
  };
  // The second process runs its op after the first one's step, in a step that begins at the same time or later.
  const Trace same = lower(std::vector{step(1, 10, 11, 13), step(2, 10, 14, 16)});
  const Trace behind = lower(std::vector{step(1, 10, 11, 13), step(2, 20, 24, 26)});
  CHECK(same.text(same.data().marks.back().name) == "0");
  CHECK(behind.text(behind.data().marks.back().name) == "after 0");
}

TEST_CASE("a folder of capture files is imported as one trace") {
  const ScratchFolder scratch;
  const std::string folder = scratch.file("run.raw");
  std::filesystem::create_directory(folder);
  const auto write = [&](const char* name, std::string text) {
    for (char& c : text)
      if (c == '\'') c = '"';
    write_file(folder + "/" + name, text);
  };
  write("1.cupti.jsonl", "{'tidepool_raw': 1, 'process': 1, 'source': 'cupti', 'clock': 'monotonic_raw'}\n" +
                             driver("alloc", 1, 4096, 4096) + kernel("k", 5, "['touch', 4096]"));
  write("1.torch.jsonl", "{'tidepool_raw': 1, 'process': 1, 'source': 'torch', 'clock': 'monotonic_raw'}\n" +
                             tensor("alloc", 2, 4096, 100));
  write("2.cupti.raw", "");
  const Trace trace = load_trace(folder);
  CHECK(program(trace) == Lines{"alloc 0", "run k"});
  CHECK(trace.buffer(BufferId{0}).size == 100_B);
  CHECK(trace.data().meta.at("capture") == "cupti+torch");
  CHECK(load_trace(folder, "raw", 0).hash() == trace.hash());
  CHECK_THROWS_WITH(load_trace(folder, "raw", 3), folder + ": no device 3; the capture has 0");
}

}  // namespace tidepool::lower_test
