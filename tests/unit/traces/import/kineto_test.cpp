// Kineto files, rule by rule: small files made here, and the traces that they give.
#include <fmt/format.h>

#include "tests/catch.hpp"
#include "tests/importing.hpp"
#include "traces/import/importer.hpp"
#include "traces/import/kineto_waits.hpp"
#include "traces/iteration.hpp"
#include "traces/summary.hpp"

namespace tidepool::kineto_test {

using Catch::Matchers::StartsWith;
using tests::complaint;
using tests::program;

namespace {

using Names = std::vector<std::string>;

std::string file(const std::string& events) {
  return R"({"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "V100"}], "traceEvents": [)" + events + "]}";
}

/// A kernel; times in us. It is launched at `launch` by a call with the same correlation.
std::string kernel(const std::string& name, int launch, int start, int correlation, int stream = 7, int device = 0) {
  return fmt::format(
      R"({{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": {}, "dur": 1,)"
      R"( "args": {{"cbid": 211, "correlation": {}}}}},)"
      R"({{"ph": "X", "cat": "kernel", "name": "{}", "pid": 0, "tid": 7, "ts": {}, "dur": 2.5,)"
      R"( "args": {{"device": {}, "stream": {}, "correlation": {}, "grid": [1, 1, 1]}}}})",
      launch, correlation, name, start, device, stream, correlation);
}

std::string memory(int time, std::int64_t address, int bytes, int total, int device = 0) {
  return fmt::format(
      R"({{"ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]", "pid": 1, "tid": 1, "ts": {}, "args":)"
      R"( {{"Device Type": 1, "Device Id": {}, "Addr": {}, "Bytes": {}, "Total Allocated": {}}}}})",
      time, device, address, bytes, total);
}

/// A memory event in the form of 2021: no category, no address, no total.
std::string old_memory(int time, int bytes) {
  return fmt::format(R"({{"ph": "i", "s": "t", "name": "[memory]", "pid": 1, "tid": "1", "ts": {}, "args":)"
                     R"( {{"Device Type": 1, "Device Id": 0, "Bytes": {}}}}})",
                     time, bytes);
}

std::string range(const std::string& category, const std::string& name, int begin, int duration,
                  const std::string& args = "") {
  return fmt::format(
      R"({{"ph": "X", "cat": "{}", "name": "{}", "pid": 1, "tid": 1, "ts": {}, "dur": {}, "args": {{{}}}}})", category,
      name, begin, duration, args);
}

Trace read(const std::string& events) { return read_kineto(Input{"t.json", file(events)}); }

Names ops(const Trace& trace) {
  Names names;
  for (const Op& op : trace.ops()) names.emplace_back(trace.text(op.name));
  return names;
}

}  // namespace

TEST_CASE("a Kineto file is recognised by its first bytes") {
  CHECK(find_importer(Input{"t.json", file("")}, "auto").name == "kineto");
  CHECK(find_importer(Input{"t", R"( {"traceEvents": []})"}, "auto").name == "kineto");
}

TEST_CASE("a kernel is placed in the order of its launch, and its start time is kept") {
  const Trace trace = read(kernel("b", 20, 40, 2) + "," + kernel("a", 10, 30, 1) + "," + memory(15, 4096, 512, 512));
  CHECK(program(trace) == Names{"run a", "alloc 0", "run b"});
  CHECK(trace.op(OpId{0}).launch == 0_us);  // times count from the first event
  CHECK(trace.op(OpId{0}).start == 20_us);
  CHECK(trace.op(OpId{1}).launch == 10_us);
  CHECK(trace.op(OpId{1}).duration == 2500_ns);
  CHECK(trace.data().streams == Names{"7"});
  CHECK(trace.data().losses == Losses{});
  CHECK(trace.data().uses.empty());
  CHECK(trace.data().meta.at("device") == "V100");
}

TEST_CASE("fractions of a microsecond are kept, also in times since 1970") {
  std::string text = kernel("a", 1, 2, 1);
  text.replace(text.find("\"ts\": 1,"), 8, "\"ts\": 1733456789012345.001,");
  text.replace(text.find("\"ts\": 2,"), 8, "\"ts\": 1733456789012345.678,");
  CHECK(read(text).op(OpId{0}).start == 677_ns);
}

TEST_CASE("kernels of one stream run in the order of their starts, kernels of different streams in that of launches") {
  // Another thread launched b later, but the stream ran it first.
  CHECK(ops(read(kernel("a", 10, 50, 1) + "," + kernel("b", 20, 40, 2))) == Names{"b", "a"});
  CHECK(ops(read(kernel("a", 10, 50, 1) + "," + kernel("b", 20, 40, 2, 8))) == Names{"a", "b"});
}

TEST_CASE("a kernel whose launch was lost follows the op before it on its stream, and is counted") {
  std::string orphan = kernel("b", 90, 60, 3);
  orphan = orphan.substr(orphan.find("},") + 2);
  orphan = orphan.substr(orphan.find('{'));
  const Trace trace = read(kernel("a", 10, 50, 1) + "," + kernel("c", 20, 70, 2) + "," + orphan);
  CHECK(ops(trace) == Names{"a", "b", "c"});
  CHECK(trace.op(OpId{1}).launch == Nanos{-1});
  CHECK(trace.data().losses.dropped_records == 1);
}

TEST_CASE("work that was launched before the profile belongs to an earlier step, and nothing is lost") {
  // Two kernels without a launch run first on the stream; then come those of iterations 5 and 6.
  const auto unlaunched = [](const std::string& name, int start) {
    const std::string both = kernel(name, 1, start, 900 + start);
    return both.substr(both.find("},{") + 2);
  };
  const Trace trace = read(range("user_annotation", "ProfilerStep#5", 10, 20) + "," +
                           range("user_annotation", "ProfilerStep#6", 30, 20) + "," + unlaunched("x", 12) + "," +
                           unlaunched("y", 40) + "," + kernel("a", 15, 60, 1) + "," + kernel("b", 35, 70, 2));
  CHECK(ops(trace) == Names{"x", "y", "a", "b"});
  CHECK(ops(one_iteration(trace, 0)) == Names{"a"});
  CHECK(ops(one_iteration(trace, 1)) == Names{"b"});
  CHECK(trace.data().losses == Losses{});
  CHECK(trace.data().meta.at("earlier") ==
        "2 activities were launched before the profile began, and belong to an earlier step");
}

TEST_CASE("the bytes that the allocator says it has reserved are kept") {
  const auto with_reserved = [](std::string event, int reserved) {
    return event.insert(event.find("\"Addr\""), fmt::format("\"Total Reserved\": {}, ", reserved));
  };
  const auto meta =
      read(with_reserved(memory(1, 4096, 100, 1000), 8000) + "," + with_reserved(memory(2, 4096, -100, 900), 7000))
          .data()
          .meta;
  CHECK(meta.at("reserved_peak_bytes") == "8000");
  CHECK(meta.at("allocated_peak_bytes") == "1000");
  CHECK_FALSE(read(memory(1, 4096, 100, 1000)).data().meta.contains("reserved_peak_bytes"));
  // Of another device than the one of the kernels; not of two devices.
  const auto on = [&](int device, int time) {
    std::string event = with_reserved(memory(time, 4096, 100, 1000), 8000);
    const std::string zero = "\"Device Id\": 0";
    return event.replace(event.find(zero), zero.size(), fmt::format("\"Device Id\": {}", device));
  };
  const std::string work = kernel("a", 15, 60, 1) + ",";
  CHECK(read(work + on(1, 1)).data().meta.at("reserved_peak_bytes") == "8000");
  CHECK_FALSE(read(work + on(0, 1) + "," + on(1, 2)).data().meta.contains("reserved_peak_bytes"));
}

TEST_CASE("a Kineto file is recognised by its keys if a user's are in front of them") {
  const std::string user = R"({"metadata": {"note": ")" + std::string(30'000, 'x') + "\"}, ";
  CHECK(find_importer(Input{"t.json", user + R"("traceEvents": [], "schemaVersion": 1})"}, "auto").name == "kineto");
  CHECK_THROWS_WITH(find_importer(Input{"t.json", user + R"("other": []})"}, "auto"),
                    StartsWith("t.json: text in no form that tidepool reads; known: "));
}

TEST_CASE("activity of an MTIA accelerator is named") {
  CHECK(complaint(read_kineto, file(range("mtia_ccp_events", "op", 1, 2))) ==
        "t.log: the device activity is of an MTIA accelerator (\"mtia_ccp_events\"), which tidepool does not read; "
        "expected a profile of the program on a GPU, or a dry run (tidepool record --dry)");
}

TEST_CASE("a kernel whose launch was lost is in no range, whatever the thread of the range is called") {
  std::string named = range("cpu_op", "aten::mm", 1, 90, R"("Sequence number": 3)");
  named.replace(named.find("\"tid\": 1"), 8, "\"tid\": \"abc\"");
  const std::string launched = kernel("a", 10, 50, 1);
  const Trace trace = read(named + "," + launched.substr(launched.find("},{") + 2));
  REQUIRE(ops(trace) == Names{"a"});
  CHECK(trace.op(OpId{0}).phase == Phase::kUnknown);
}

TEST_CASE("a wait is not taken for one of the thread that launched an op if this thread is not known") {
  KinetoWaits waits;
  waits.issued(1, {0, 8}, OpId{0}, 15_us);
  waits.issued({}, {0, 7}, OpId{1}, 10_us);
  waits.event_wait(-1);
  CHECK(waits.before({}, {0, 7}, 20_us).empty());
  CHECK(waits.waited_for({KinetoWaitKind::kStream, 0, -1, 0_us, 20_us}) ==
        KinetoWaits::Stream{0, 8});  // that which ended last
}

TEST_CASE("copies, memsets and collectives are recognised by the names that old and new profilers give them") {
  const auto kind = [](const std::string& category, const std::string& name) {
    std::string text = kernel(name, 1, 2, 1);
    text.replace(text.find("\"cat\": \"kernel\""), 15, "\"cat\": \"" + category + "\"");
    return read(text).op(OpId{0}).kind;
  };
  CHECK(kind("Kernel", "gemm") == OpKind::kKernel);
  CHECK(kind("gpu_memcpy", "Memcpy HtoD") == OpKind::kCopy);
  CHECK(kind("Memcpy", "Memcpy HtoD") == OpKind::kCopy);
  CHECK(kind("gpu_memset", "Memset (Device)") == OpKind::kMemset);
  CHECK(kind("Memset", "Memset (Device)") == OpKind::kMemset);
  CHECK(kind("kernel", "ncclKernel_AllReduce_RING") == OpKind::kCollective);
}

TEST_CASE("memory from before the profile is derived from the first total and the frees") {
  // 900 B are from before: 300 B are freed at time 3, 600 B never.
  const Trace trace = read(memory(1, 4096, 100, 1000) + "," + memory(2, 4096, -100, 900) + "," +
                           memory(3, 8192, -300, 600) + "," + memory(4, 4096, 200, 800));
  REQUIRE(trace.buffers().size() == 4);
  CHECK(trace.text(trace.buffers()[0].name) == "allocated before and never freed");
  CHECK(trace.buffers()[0].size == 600_B);
  CHECK(trace.buffers()[0].outlives);
  CHECK(trace.buffers()[1].size == 300_B);
  CHECK(trace.buffers()[1].address == 8192);
  CHECK(trace.buffers()[1].born_before);
  CHECK(program(trace) == Names{"alloc 2", "free 2", "free 1", "alloc 3"});
  CHECK(trace.ideal_peak() == 1000_B);
  CHECK(trace.data().losses == Losses{});
}

TEST_CASE(
    "a buffer that is allocated when a kernel is launched comes before the kernel, and a free at that time after it") {
  CHECK(program(read(memory(10, 1, 5, 5) + "," + memory(10, 1, -5, 0) + "," + kernel("a", 10, 20, 1))) ==
        Names{"alloc 0", "run a", "free 0"});
  // A free that makes room for a later allocation at the same time stays before that allocation.
  CHECK(program(read(memory(9, 1, 5, 5) + "," + memory(10, 1, -5, 0) + "," + memory(10, 1, 6, 6) + "," +
                     kernel("a", 10, 20, 1))) == Names{"alloc 0", "free 0", "alloc 1", "run a"});
}

TEST_CASE("lost memory events are found by the totals and the addresses, and count once") {
  const auto lost = [](const std::string& events) { return read(events).data().losses.dropped_records; };
  CHECK(lost(memory(1, 1, 5, 5) + "," + memory(2, 2, 5, 10)) == 0);
  CHECK(lost(memory(1, 1, 5, 5) + "," + memory(2, 2, 5, 15)) == 1);  // an allocation of 5 B
  CHECK(lost(memory(1, 1, 5, 5) + "," + memory(2, 1, 5, 5)) == 1);   // the free of the first 5 B
  CHECK(lost(memory(1, 1, 5, 5) + "," + memory(2, 1, -7, 0)) == 2);  // the free of 5 B and an allocation of 7 B
}

TEST_CASE("memory events without addresses are matched by size, the youngest first") {
  const Trace trace =
      read(old_memory(1, 5) + "," + old_memory(2, 5) + "," + old_memory(3, -5) + "," + old_memory(4, -7));
  CHECK(program(trace) == Names{"alloc 1", "alloc 2", "free 2", "free 0"});
  CHECK(trace.buffers()[0].size == 7_B);
  CHECK(trace.buffers()[0].address == -1);
  CHECK(trace.ideal_peak() == 17_B);
  CHECK(trace.data().meta.at("memory") == "block sizes of the allocator; frees matched by size, no addresses recorded");
}

TEST_CASE("memory of the host is not read") {
  std::string text = memory(1, 1, 5, 5);
  text.replace(text.find("\"Device Type\": 1"), 16, "\"Device Type\": 0");
  CHECK(read(text + "," + kernel("a", 1, 2, 1)).buffers().empty());
}

TEST_CASE("memory is named after the outermost operator and goes to the stream of the thread's next launch") {
  const Trace trace = read(range("cpu_op", "aten::conv2d", 1, 9) + "," + range("cpu_op", "aten::empty", 2, 2) + "," +
                           memory(3, 1, 5, 5) + "," + kernel("a", 5, 6, 1, 20) + "," + kernel("b", 8, 9, 2, 7) + "," +
                           memory(7, 2, 5, 10));
  CHECK(trace.text(trace.buffers()[0].name) == "aten::conv2d");
  CHECK(trace.data().streams[trace.buffers()[0].stream.index()] == "20");
  CHECK(trace.data().streams[trace.buffers()[1].stream.index()] == "7");
}

TEST_CASE("phases come from autograd and the optimizer, modules from nn.Module calls") {
  const std::string recorded = R"("Sequence number": 3)";
  const Trace trace = read(
      range("python_function", "nn.Module: Net_0", 1, 20) + "," +
      range("python_function", "nn.Module: Linear_1", 2, 8) + "," +
      range("python_function", "torch/nn/functional.py(1): linear", 2, 8) + "," +
      range("cpu_op", "autograd::engine::evaluate_function: AddmmBackward0", 30, 10) + "," +
      range("cpu_op", "aten::mm", 31, 8, recorded) + "," + range("user_annotation", "Optimizer.step#SGD.step", 50, 10) +
      "," + range("cpu_op", "aten::add", 70, 10, recorded) + "," + kernel("in_linear", 5, 6, 1) + "," +
      kernel("in_net", 15, 16, 2) + "," + kernel("in_backward", 35, 36, 3) + "," + kernel("in_step", 55, 56, 4) + "," +
      kernel("recorded", 75, 76, 5) + "," + kernel("outside", 90, 91, 6));
  REQUIRE(ops(trace) == Names{"in_linear", "in_net", "in_backward", "in_step", "recorded", "outside"});
  const auto module = [&](std::size_t op) { return std::string{trace.text(trace.op(OpId{op}).module)}; };
  CHECK(module(0) == "Net_0.Linear_1");
  CHECK(module(1) == "Net_0");
  CHECK(module(2) == "");
  const std::vector<Phase> phases{Phase::kForward,   Phase::kForward, Phase::kBackward,
                                  Phase::kOptimizer, Phase::kForward, Phase::kUnknown};
  for (std::size_t i = 0; i < phases.size(); ++i) CHECK(trace.op(OpId{i}).phase == phases[i]);
}

TEST_CASE("a long path of modules is cut at 1000 bytes, between characters") {
  const auto module = [](int letters) {
    const Trace trace =
        read(range("python_function", "nn.Module: " + std::string(static_cast<std::size_t>(letters), 'm'), 1, 20) +
             "," + range("python_function", "nn.Module: \u00e4\u00e4", 2, 8) + "," + kernel("a", 5, 6, 1));
    return std::string{trace.text(trace.op(OpId{0}).module)};
  };
  const auto path = [](int letters, const std::string& rest) {
    return std::string(static_cast<std::size_t>(letters), 'm') + rest;
  };
  CHECK(module(995) == path(995, ".\xc3\xa4\xc3\xa4"));  // 1000 bytes
  CHECK(module(996) == path(996, ".\xc3\xa4"));
  CHECK(module(997) == path(997, ".\xc3\xa4"));
  CHECK(module(2000) == path(1000, ""));
}

TEST_CASE("a profile without memory events is a timeline, and says how to record them") {
  CHECK(warnings(read(kernel("a", 5, 6, 1))) ==
        Names{"lacks memory events: this is a timeline only; profile with profile_memory=True"});
  CHECK_FALSE(read(kernel("a", 5, 6, 1) + "," + memory(3, 1, 5, 5)).data().meta.contains("lacks"));
  std::string of_host = memory(3, 1, 5, 5);
  of_host.replace(of_host.find("\"Device Type\": 1"), 16, "\"Device Type\": 0");
  CHECK(warnings(read(kernel("a", 5, 6, 1) + "," + of_host)) ==
        Names{"lacks memory events of the device, all are of the host: this is a timeline only"});
}

TEST_CASE("ProfilerStep marks iterations, other annotations mark ranges") {
  const Trace trace =
      read(range("user_annotation", "ProfilerStep#5", 0, 20) + "," + range("Operator", "ProfilerStep#6", 20, 20) + "," +
           range("user_annotation", "all2all", 24, 2) + "," + kernel("a", 5, 6, 1) + "," + kernel("b", 25, 26, 2) +
           "," + kernel("c", 30, 31, 3));
  Names marks;
  for (const Mark& mark : trace.data().marks)
    marks.push_back(fmt::format("{} {} {}", mark.event, static_cast<int>(mark.kind), trace.text(mark.name)));
  CHECK(marks == Names{"0 0 5", "1 0 6", "1 2 all2all", "2 3 all2all"});
  CHECK(ops(one_iteration(trace, 1)) == Names{"b", "c"});
}

TEST_CASE("one of several devices can be read alone") {
  const std::string events =
      kernel("a", 1, 2, 1) + "," + kernel("b", 3, 4, 2, 7, 1) + "," + memory(5, 1, 5, 5) + "," + memory(6, 1, 6, 6, 1);
  CHECK(read(events).data().streams == Names{"7", "1:7"});
  CHECK(read(events).buffers().size() == 2);
  const Trace trace = read_kineto_device(Input{"t.json", file(events)}, 1);
  CHECK(program(trace) == Names{"run b", "alloc 0"});
  CHECK(trace.buffers()[0].device == 1);
}

TEST_CASE("a Kineto file may have its members in another order, escapes, and events of other kinds") {
  const std::string text =
      R"({"traceName": "a \"]} b", "traceEvents": [ {"name": "process_name", "ph": "M", "pid": "Spans", "args": {}},
      {"args": {"stream": 7, "device": 0, "correlation": 4}, "dur": 1, "ts": 5, "name": "f<\"x\\\">", "cat": "kernel",
       "ph": "X"} ], "schemaVersion": 1})";
  CHECK(ops(read_kineto(Input{"t.json", text})) == Names{"f<\"x\\\">"});
}

}  // namespace tidepool::kineto_test
