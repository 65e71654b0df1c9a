#include <algorithm>
#include <array>
#include <fstream>
#include <string>
#include <vector>

#include "tests/catch.hpp"
#include "tests/importing.hpp"
#include "tests/nsys_report.hpp"
#include "tests/program.hpp"
#include "tests/refusal.hpp"
#include "tests/shared_data.hpp"
#include "traces/import/importer.hpp"
#include "traces/iteration.hpp"
#include "traces/summary.hpp"

namespace tidepool::nsys_test {

using namespace tidepool::literals;
using tests::NsysWriter;
using tests::program;

namespace {

constexpr auto kNone = NsysWriter::kNone;

Trace read(const NsysWriter& report) { return read_nsys(Input{"r.sqlite", report.file()}); }

std::vector<std::string> marks(const Trace& trace) {
  std::vector<std::string> found;
  constexpr std::array<const char*, 4> kKinds{"iteration", "phase", "begin", "end"};
  for (const Mark& mark : trace.data().marks)
    found.push_back(
        fmt::format("{} {} {}", mark.event, kKinds[static_cast<std::size_t>(mark.kind)], trace.text(mark.name)));
  return found;
}

/// Orders of ops: "1>3" means that op 3 waits for op 1.
std::vector<std::string> orders(const Trace& trace) {
  std::vector<std::string> found;
  for (const Order& order : trace.data().orders)
    found.push_back(fmt::format("{}>{}", order.before.value(), order.after.value()));
  return found;
}

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("an nsys report gives kernels, copies and memsets in the order of their launches") {
  NsysWriter report;
  report.kernel("late", 130, 400, 450);  // first in the report, launched last
  report.copy(1, 100, 150, 250);
  report.memset(110, 260, 265);
  report.kernel("ncclDevKernel_AllReduce", 120, 300, 380, 20);
  const Trace trace = read(report);
  CHECK(program(trace) == Names{"run memcpy HtoD", "run memset", "run void ncclDevKernel_AllReduce<float>(int)",
                                "run void late<float>(int)"});
  const std::vector<Op> ops(trace.ops().begin(), trace.ops().end());
  CHECK(ops[0].kind == OpKind::kCopy);
  CHECK(ops[1].kind == OpKind::kMemset);
  CHECK(ops[2].kind == OpKind::kCollective);
  CHECK(ops[3].kind == OpKind::kKernel);
  CHECK(ops[0].launch == 0_ns);  // the trace begins at 100
  CHECK(ops[0].start == 50_ns);
  CHECK(ops[0].duration == 100_ns);
  CHECK(ops[3].launch == 30_ns);
  CHECK(ops[3].start == 300_ns);
  CHECK(trace.data().streams == Names{"7", "20"});
  CHECK(trace.data().meta.at("time") == "measured");
}

TEST_CASE("an nsys report with an empty write-ahead log is read, and one whose log has content is refused") {
  NsysWriter report;
  report.kernel("k", 100, 150, 250);
  std::string file = report.file();
  file[18] = file[19] = 2;  // as PRAGMA journal_mode = WAL sets them
  CHECK(program(read_nsys(Input{"r.sqlite", file})) == Names{"run void k<float>(int)"});

  const ScratchFolder folder;
  const std::string path = folder.file("r.sqlite"), ahead = path + "-wal";
  std::ofstream{ahead} << "";  // an empty log, as after wal_checkpoint(TRUNCATE)
  CHECK(program(read_nsys(Input{path, file})).size() == 1);
  std::ofstream{ahead} << "pages";
  CHECK(tests::refusal([&] {
          read_nsys(Input{path, file});
        }) == path + ": part of it may still be in " + ahead +
                  "; expected a database that was closed, as after sqlite3 " + path +
                  " 'PRAGMA wal_checkpoint(TRUNCATE)'");
}

TEST_CASE("the ops of an nsys report without host calls are in the order of the GPU's times") {
  NsysWriter report;
  report.kernel("second", 1, 200, 210);
  report.kernel("first", 2, 100, 150);
  report.sql("DROP TABLE CUPTI_ACTIVITY_KIND_RUNTIME;");
  const Trace trace = read(report);
  CHECK(program(trace) == Names{"run void first<float>(int)", "run void second<float>(int)"});
  CHECK(trace.ops()[0].launch == Nanos{-1});
  CHECK(trace.ops()[1].start == 100_ns);
}

TEST_CASE("an nsys report's graph without nodes is one op, and the nodes of a launched graph are in the GPU's order") {
  NsysWriter report;
  report.kernel("a", 10, 20, 30);
  report.sql(
      "CREATE TABLE CUPTI_ACTIVITY_KIND_GRAPH_TRACE(start, end, deviceId, streamId, contextId, globalPid, "
      "correlationId, graphId);"
      "INSERT INTO CUPTI_ACTIVITY_KIND_GRAPH_TRACE VALUES(40, 90, 0, 7, 1, NULL, NULL, 3);");
  CHECK(program(read(report)) == Names{"run void a<float>(int)", "run CUDA graph 3"});

  NsysWriter nodes;
  nodes.kernel("second", 10, 40, 50);
  nodes.kernel("first", 10, 20, 30);  // launched at the same time
  CHECK(program(read(nodes)) == Names{"run void first<float>(int)", "run void second<float>(int)"});
}

TEST_CASE(
    "an nsys report's device memory gives buffers between the launches, and host memory and static variables do not") {
  NsysWriter report;
  report.memory_table();
  report.memory(false, 100, 0x1000, 64);
  report.kernel("a", 110, 120, 130);
  report.memory(false, 115, 0x9000, 8, NsysWriter::kPinnedMemory);
  report.memory(false, 116, 0xa000, 8, NsysWriter::kDeviceStatic);
  report.memory(false, 117, 0xb000, 8, NsysWriter::kManagedStatic);
  report.memory(true, 140, 0x1000, 64);
  report.memory(false, 150, 0x1000, 32);  // at the same address as before
  report.memory(true, 160, 0x2000, 16);   // allocated before the report
  report.kernel("b", 170, 180, 190);
  report.memory(true, 200, 0x2000, 16);  // freed twice
  const Trace trace = read(report);
  CHECK(program(trace) ==
        Names{"alloc 1", "run void a<float>(int)", "free 1", "alloc 2", "free 0", "run void b<float>(int)"});
  CHECK(trace.buffer(BufferId{0}).size == 16_B);
  CHECK(trace.buffer(BufferId{0}).born_before);
  CHECK(trace.buffer(BufferId{1}).address == 0x1000);
  CHECK(trace.buffer(BufferId{2}).outlives);
  CHECK(trace.ideal_peak() == 80_B);  // 16 B from before and 64 B
  CHECK(trace.data().losses.unmatched_frees == 1);
  CHECK(warnings(trace) ==
        Names{"1 free of memory whose allocation was not seen",
              "no op says which buffers it uses: pools can be compared, swapping and recomputation cannot"});
}

TEST_CASE("in an nsys report, an allocation at an address in use means that a free was lost") {
  NsysWriter report;
  report.memory_table();
  report.memory(false, 100, 0x1000, 64);
  report.memory(false, 110, 0x1000, 32);
  const Trace trace = read(report);
  CHECK(program(trace) == Names{"alloc 0", "free 0", "alloc 1"});
  CHECK(trace.data().losses.dropped_records == 1);
}

TEST_CASE("an nsys report without memory events is a timeline, and says how to record them") {
  NsysWriter report;
  report.kernel("a", 0, 10, 20);
  CHECK(warnings(read(report)) ==
        Names{"lacks memory events: this is a timeline only; record them with nsys profile --cuda-memory-usage=true"});
  report.memory_table();  // memory was recorded, but there was no event
  CHECK(warnings(read(report)).empty());
}

TEST_CASE("in an nsys report, a stream waits for the work that was issued before the event was recorded") {
  NsysWriter report;
  report.kernel("a", 10, 100, 110, 7);   // 0
  report.record(1, 20, 7);               //
  report.kernel("b", 30, 120, 130, 7);   // 1, after the event
  report.kernel("c", 40, 100, 105, 20);  // 2, before the wait
  report.wait(20, 1, 50);                //
  report.kernel("d", 60, 140, 150, 20);  // 3 waits for 0
  report.kernel("e", 70, 150, 160, 20);  // 4 follows 3 on the same stream
  report.kernel("f", 80, 100, 110, 21);  // 5, another stream
  CHECK(orders(read(report)) == Names{"0>3"});
}

TEST_CASE("a wait for an event that was recorded twice means its last record, or the one that the wait names") {
  for (const auto& [waits_for, expected] : {std::pair{0, "1>2"}, std::pair{8, "0>2"}, std::pair{9, "1>2"}}) {
    NsysWriter report;
    report.kernel("a", 10, 100, 110, 7);
    report.record(1, 20, 7, 8);
    report.kernel("b", 30, 120, 130, 7);
    report.record(1, 40, 7, 9);
    report.wait(20, 1, 50, waits_for);
    report.kernel("c", 60, 140, 150, 20);
    CHECK(orders(read(report)) == Names{expected});
  }
}

TEST_CASE("in an nsys report, the work that the host waited for comes before its next launch") {
  const auto found = [](std::int64_t stream, std::int64_t event, int result) {
    NsysWriter report;
    report.kernel("a", 10, 100, 110, 7);
    report.record(1, 20, 7);
    report.kernel("b", 30, 120, 130, 7);
    report.kernel("c", 40, 120, 130, 8);
    report.wait(stream, event, 50, 0, result);
    report.kernel("d", 60, 200, 210, 20);
    return orders(read(report));
  };
  CHECK(found(7, kNone, 0) == Names{"1>3"});             // the stream
  CHECK(found(kNone, 1, 0) == Names{"0>3"});             // the event
  CHECK(found(kNone, kNone, 0) == Names{"1>3", "2>3"});  // everything
  CHECK(found(kNone, 1, 600).empty());                   // a query, "not ready"
}

TEST_CASE("each process of an nsys report has its own streams and addresses, and waits for no other process") {
  NsysWriter report;
  report.memory_table();
  report.memory(false, 5, 0x1000, 64);
  report.kernel("a", 10, 100, 110, 7);
  report.process = 43 << 24;
  report.memory(false, 15, 0x1000, 32);
  report.kernel("b", 20, 100, 110, 7);
  report.wait(kNone, kNone, 30);
  report.kernel("c", 40, 120, 130, 8);
  const Trace trace = read(report);
  CHECK(trace.data().streams == Names{"7", "7 of context 1 of process 43", "8"});
  CHECK(orders(trace) == Names{"1>2"});
  CHECK(trace.ideal_peak() == 96_B);
}

TEST_CASE("ranges of an nsys report give iterations, phases and modules to the ops that are launched in them") {
  NsysWriter report;
  report.kernel("before", 5, 6, 7);
  report.range("train_step 1", 10, "100");
  report.range("Forward", 20, "50");
  report.range("encoder.layer.0", 30, "40");
  report.kernel("a", 31, 200, 210);  // in the module
  report.kernel("b", 45, 210, 220);  // in the forward pass
  report.range("backward", 60, "80");
  report.kernel("c", 60, 220, 230);
  report.range("Optimizer.step#SGD.step", 90, "NULL");  // not closed at the end
  report.kernel("d", 95, 230, 240);
  report.range("train_step 2", 110, "120");
  report.kernel("e", 115, 240, 250);
  report.kernel("after", 130, 250, 260);
  const Trace trace = read(report);
  const std::vector<Op> ops(trace.ops().begin(), trace.ops().end());
  std::vector<Phase> phases;
  for (const Op& op : ops) phases.push_back(op.phase);
  CHECK(phases == std::vector{Phase::kUnknown, Phase::kForward, Phase::kForward, Phase::kBackward, Phase::kOptimizer,
                              Phase::kOptimizer, Phase::kOptimizer});
  CHECK(trace.text(ops[1].module) == "encoder.layer.0");
  CHECK(trace.text(ops[2].module).empty());
  CHECK(marks(trace) == Names{"1 iteration train_step 1", "1 begin train_step 1", "1 begin Forward",
                              "1 begin encoder.layer.0", "2 end encoder.layer.0", "3 end Forward", "3 begin backward",
                              "4 end backward", "4 begin Optimizer.step#SGD.step", "5 end train_step 1",
                              "5 iteration train_step 2", "5 begin train_step 2", "6 end train_step 2",
                              "6 iteration after train_step 2"});
  CHECK(one_iteration(trace, 1).ops().size() == 1);
}

TEST_CASE("without numbered ranges the period of an nsys report's launches gives its iterations") {
  NsysWriter report;
  for (int i = 0; i < 8; ++i)
    for (int j = 0; j < 3; ++j) report.copy(j == 2 ? 2 : 1, 100 * i + j, 100 * i + 10 * j + 10, 100 * i + 10 * j + 15);
  CHECK(summarize(read(report)).iterations == 8);
}

TEST_CASE("one of the devices of an nsys report is read with --device") {
  NsysWriter report;
  report.memory_table();
  report.kernel("a", 10, 20, 30, 7, 0);
  report.kernel("b", 20, 30, 40, 9, 1);
  report.memory(false, 5, 0x1000, 64, NsysWriter::kDeviceMemory, 0);
  report.memory(false, 15, 0x1000, 32, NsysWriter::kDeviceMemory, 1);
  CHECK(read(report).data().streams == Names{"7", "1:9"});
  CHECK(program(read(report)) == Names{"alloc 0", "run void a<float>(int)", "alloc 1", "run void b<float>(int)"});
  const Trace second = read_nsys_device(Input{"r.sqlite", report.file()}, 1);
  CHECK(program(second) == Names{"alloc 0", "run void b<float>(int)"});
  CHECK(second.buffer(BufferId{0}).device == 1);
  CHECK(second.ops()[0].launch == 5_ns);  // the trace begins with its first record, at 15
}

TEST_CASE("a kernel of an nsys report whose time was lost keeps its place, and is counted") {
  NsysWriter report;
  report.kernel("a", 10, 100, 110);
  report.kernel("b", 20, 0, 0);
  report.kernel("c", 30, 120, 130);
  const Trace trace = read(report);
  CHECK(program(trace)[1] == "run void b<float>(int)");
  CHECK(trace.ops()[1].start == Nanos{-1});
  CHECK(trace.ops()[0].start == 90_ns);
  CHECK(trace.data().losses.dropped_records == 1);
}

TEST_CASE("an empty range of an nsys report does not include the next launch") {
  NsysWriter report;
  report.range("forward", 10, "10");
  report.kernel("a", 10, 20, 30);
  report.kernel("b", 11, 30, 40);
  const Trace trace = read(report);
  CHECK(marks(trace) == Names{"0 begin forward", "1 end forward"});
  CHECK(trace.ops()[0].phase == Phase::kForward);
  CHECK(trace.ops()[1].phase == Phase::kUnknown);
}

TEST_CASE("the trace of a real nsys report has the counts of its tables") {
  const auto path = tests::shared_data("nsys/nsys_cs336_jsun.sqlite.gz");
  if (!path) return;
  const Trace trace = load_trace(*path);
  std::array<int, 6> of_kind{};
  std::array<int, 4> of_phase{};
  Nanos kernel_time;
  for (const Op& op : trace.ops()) {
    ++of_kind[static_cast<std::size_t>(op.kind)];
    ++of_phase[static_cast<std::size_t>(op.phase)];
    if (op.kind == OpKind::kKernel) kernel_time += op.duration;
    CHECK(op.launch >= 0_ns);
    CHECK(op.start >= op.launch);
  }
  CHECK(of_kind == std::array{17032, 272, 1510, 0, 0, 0});
  CHECK(kernel_time == Nanos{1'733'804'486});
  CHECK(of_phase == std::array{132, 10940, 7742, 0});
  CHECK(trace.data().streams == Names{"7"});
  CHECK(trace.data().orders.empty());  // one stream
  CHECK(trace.data().losses == Losses{});
  CHECK(trace.data().meta.at("device") == "NVIDIA GeForce RTX 3070 Ti");
  CHECK(trace.data().meta.at("capture") == "Nsight Systems 2025.1.3.140");
  int ranges = 0;
  std::vector<std::string> iterations;
  for (const Mark& mark : trace.data().marks) {
    ranges += mark.kind == MarkKind::kRangeBegin;
    if (mark.kind == MarkKind::kIteration) iterations.emplace_back(trace.text(mark.name));
  }
  CHECK(ranges == 31);  // of 32 NVTX events, one names a domain
  CHECK(iterations == Names{"Warm-up Step 1", "Warm-up Step 2", "Warm-up Step 3", "Warm-up Step 4", "Warm-up Step 5",
                            "after Warm-up Step 5"});
  for (const std::string& text : trace.data().strings) CHECK(text.find("/home/") == std::string::npos);
}

}  // namespace tidepool::nsys_test
