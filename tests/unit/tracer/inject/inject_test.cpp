// The recorder, loaded by the fake of NVIDIA's driver and CUPTI as by the real driver.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "tests/catch.hpp"
#include "tests/fake_cuda/job.hpp"
#include "tests/paths.hpp"
#include "tracer/lower/lower.hpp"

namespace tidepool::inject_test {

using tests::recorder_is_built;

#ifdef TIDEPOOL_WITH_RECORDER

using tests::kKernels;
using tests::run_job;
using tests::uses_of;
using tests::uses_of_node;

namespace {

/// The address in the memory record with this index in the file.
std::uint64_t address(const raw::Log& log, std::size_t index) { return log.memory.at(index).address; }

bool same(const raw::BufferUse& use, std::uint64_t at, raw::Access access, raw::Evidence evidence, int parameter) {
  return use.address == at && use.access == access && use.evidence == evidence && use.parameter == parameter;
}

std::string info(const raw::Log& log, const std::string& key) {
  for (const raw::Info& one : log.infos)
    if (log.text(one.key) == key) return log.text(one.value);
  return "";
}

}  // namespace

TEST_CASE("the recorder writes allocations, kernels and the arguments of each kernel") {
  const ScratchFolder folder;
  const auto job = run_job(folder, kKernels + "alloc a 4096\nalloc b 8192\nlaunch add a b+512 7\nfree a\n");
  CHECK(job.code == 0);
  CHECK(job.err.empty());
  REQUIRE(job.logs.size() == 1);
  const raw::Log& log = job.log();
  CHECK(log.header.source == raw::Source::kCupti);
  CHECK(log.header.closed == 1);
  CHECK(log.header.lost_records == 0);
  CHECK(info(log, "cupti") == "26");
  CHECK(info(log, "driver") == "12040");
  CHECK(info(log, "setting.cupti_buffers") == "host");
  CHECK(log.clocks.size() >= 2);
  REQUIRE(log.devices.size() == 1);
  CHECK(log.text(log.devices[0].name) == "Stand-in");

  REQUIRE(log.memory.size() == 3);
  CHECK(log.memory[0].operation == raw::MemoryOperation::kAlloc);
  CHECK(log.memory[0].size == 4096);
  CHECK(log.text(log.memory[0].source) == "libjob.so");  // the file name without folders
  CHECK(log.memory[2].operation == raw::MemoryOperation::kFree);
  CHECK(log.memory[2].address == address(log, 0));

  REQUIRE(log.kernels.size() == 1);
  CHECK(log.text(log.kernels[0].name) == "_Z3addPKfPfi");
  CHECK(log.kernels[0].grid[0] == 2);
  const auto uses = uses_of(log, log.kernels[0].correlation);
  REQUIRE(uses.size() == 2);
  CHECK(same(uses[0], address(log, 0), raw::Access::kRead, raw::Evidence::kConst, 0));
  CHECK(same(uses[1], address(log, 1) + 512, raw::Access::kTouch, raw::Evidence::kParameter, 1));
  CHECK(log.launches.at(0).record.end >= log.launches.at(0).record.start);
}

TEST_CASE("launches by every call are seen, and those through the runtime have the runtime's correlation id") {
  const ScratchFolder folder;
  const auto job = run_job(folder, kKernels +
                                       "alloc a 4096\nalloc b 4096\nlaunch add a b 1\nruntime-launch add a b 1\n"
                                       "launch-packed add a b 1\nlaunch-ex add a b 1\nlaunch list {5,a+8,b} b\n");
  const raw::Log& log = job.log();
  REQUIRE(log.kernels.size() == 5);
  for (const raw::Kernel& kernel : log.kernels)
    CHECK(uses_of(log, kernel.correlation).size() == (&kernel == &log.kernels.back() ? 3U : 2U));
  const auto inside = uses_of(log, log.kernels.back().correlation);
  CHECK(same(inside.at(0), address(log, 0) + 8, raw::Access::kTouch, raw::Evidence::kParameter, 0));
  CHECK(inside.at(0).offset == 8);
}

TEST_CASE("work is joined with its launch, whichever enclosing call's id it has") {
  for (const std::string which : {"outer", "inner", "driver"}) {
    INFO(which);
    const ScratchFolder folder;
    const auto job =
        run_job(folder, kKernels + "alloc a 4096\nalloc b 4096\nnested-launch add a b 1\nruntime-launch add b a 1\n",
                "FAKE_FAULTS=correlation=" + which);
    const raw::Log& log = job.log();
    REQUIRE(log.launches.size() == 2);
    const raw::Launch &nested = log.launches[0].record, &plain = log.launches[1].record;
    CHECK(nested.inner_correlation == nested.correlation + 1);
    CHECK(nested.driver_correlation == nested.correlation + 2);
    CHECK(plain.inner_correlation == 0);
    CHECK(plain.driver_correlation == plain.correlation + 1);
    const Trace trace = lower(job.logs);
    REQUIRE(trace.ops().size() == 2);
    CHECK(trace.data().uses.size() == 4);
    CHECK(!trace.data().meta.contains("launches_not_seen"));
  }
}

TEST_CASE("the scripts for the day with a GPU (tests/gpu) read the recorder's files") {
  if (std::system("python3 --version >/dev/null 2>&1") != 0) return tests::skip("no python3");
  const ScratchFolder folder;
  run_job(folder, kKernels + "alloc a 4096\nalloc b 4096\nnested-launch add a b 1\nlaunch add b a 1\n",
          "FAKE_FAULTS=correlation=inner,kernel-handles=value");
  std::filesystem::rename(folder.file("raw"), folder.file("plain.raw"));
  std::ofstream{folder.file("ask.py")} << "import pathlib, sys, types\n"
                                          "sys.path.insert(0, sys.argv[1])\n"
                                          "import questions\n"
                                          "machine = types.SimpleNamespace(folder=pathlib.Path(sys.argv[2]))\n"
                                          "print(questions.correlations(machine))\nprint(questions.handles(machine))\n"
                                          "print(questions.versions(machine))\n";
  const std::string line = "python3 -B '" + folder.file("ask.py") + "' '" + paths::source_folder() + "/tests/gpu' '" +
                           folder.file("") + "' >'" + folder.file("said") + "' 2>&1";
  CHECK(std::system(line.c_str()) == 0);
  const std::string said = content_of(folder.file("said"));
  CHECK_THAT(said, ContainsSubstring(
                       "of 2 kernels, the id is that of a call: 1 outermost, 1 nested, 0 driver; 0 of none; 0 with "
                       "parameters that could not be read; 2.0 uses each; 0 kernels without times\n"
                       "parameters: 0 by cuFuncGetParamInfo, 1 by cuKernelGetParamInfo, 0 by neither\nCUPTI 26 of "));
}

TEST_CASE("work whose launching call was not seen is counted") {
  const ScratchFolder folder;
  auto job = run_job(folder, kKernels + "alloc a 4096\nalloc b 4096\nlaunch add a b 1\nlaunch add b a 1\n");
  job.logs.at(0).kernels.at(1).correlation += 1000;
  CHECK(lower(job.logs).data().meta.at("launches_not_seen") == "1 of 2 kernels, copies and memsets");
}

TEST_CASE("a kernel that is launched by its CUkernel is described, whichever error the calls for functions give") {
  for (const std::string refusal : {"handle", "value"}) {
    INFO(refusal);
    const ScratchFolder folder;
    const auto job = run_job(folder, kKernels + "alloc a 4096\nalloc b 8192\nlaunch add a b+512 7\n",
                             "FAKE_FAULTS=kernel-handles=" + refusal);
    const raw::Log& log = job.log();
    REQUIRE(log.kernels.size() == 1);
    const auto uses = uses_of(log, log.kernels[0].correlation);
    REQUIRE(uses.size() == 2);
    CHECK(same(uses[0], address(log, 0), raw::Access::kRead, raw::Evidence::kConst, 0));
    CHECK(info(log, "parameters") == "0 by cuFuncGetParamInfo, 1 by cuKernelGetParamInfo, 0 by neither");
  }
  const ScratchFolder folder;
  const auto neither = run_job(folder, kKernels + "alloc a 4096\nlaunch add a a 7\n", "FAKE_FAULTS=no-layout");
  CHECK(info(neither.log(), "parameters") ==
        "0 by cuFuncGetParamInfo, 0 by cuKernelGetParamInfo, 1 by neither (801, 400)");
}

TEST_CASE("a CUPTI that answers only after its first use is asked again for its version and calls") {
  const ScratchFolder folder;
  const auto job = run_job(folder, kKernels + "stream s1\nevent e\nrecord e s1\nalloc a 4096\nlaunch add a a 1\n",
                           "FAKE_FAULTS=late-answers");
  CHECK(job.log().launches.size() == 1);
  CHECK(info(job.log(), "cupti") == "26");
  CHECK(!info(job.log(), "cupti_headers").empty());
  REQUIRE(job.log().event_records.size() == 1);
  CHECK(job.log().event_records[0].sync_id == 1);
}

TEST_CASE("CUPTI's own overhead is recorded, and its thread ids are not mistaken for those of the job") {
  const ScratchFolder folder;
  const auto job = run_job(folder, kKernels + "alloc a 4096\nalloc b 4096\nlaunch add a b 1\n");
  const raw::Log& log = job.log();
  REQUIRE(!log.overheads.empty());
  CHECK(log.text(log.overheads[0].name) == "buffer flush");
  CHECK(log.overheads[0].end == log.overheads[0].start + 1000);
  CHECK(log.overheads[0].thread == 0);
  CHECK(log.launches.at(0).record.thread == log.header.process);  // the job's only thread
}

TEST_CASE("the clocks are read repeatedly while the job runs") {
  const ScratchFolder folder;
  const tests::Gate read = tests::gate_until(folder, [](const raw::Log& log) { return log.clocks.size() >= 3; });
  const auto job = run_job(folder, kKernels + "alloc a 4096\n" + read.line() + "launch add a a 1\n", "", {read});
  CHECK(job.log().clocks.size() >= 4);  // at the start, at the end, and every second
  for (std::size_t i = 1; i < job.log().clocks.size(); ++i)
    CHECK(job.log().clocks[i].monotonic_raw > job.log().clocks[i - 1].monotonic_raw);
}

TEST_CASE("the pointers among launch parameters are compared with the operands of operators") {
  if (std::system("python3 --version >/dev/null 2>&1") != 0) return tests::skip("no python3");
  const ScratchFolder folder;
  const auto job = run_job(folder, kKernels +
                                       "alloc a 4096\nalloc b 4096\nalloc c 4096\nalloc d 4096\nalloc e 4096\n"
                                       "launch add a d 1\nlaunch add a e+64 1\n");
  const raw::Log& log = job.log();
  // The operator reads a, and writes b and c. The arguments of its kernels are a, d (another tensor) and e (no tensor).
  std::string lines = R"({"tidepool_raw": 1, "process": 1, "source": "torch", "clock": "monotonic_raw"})"
                      "\n";
  for (const int tensor : {0, 1, 2, 3})
    lines += fmt::format(R"({{"kind": "framework_memory", "time": 1, "action": "alloc", "address": {}, "size": 4096}})",
                         address(log, static_cast<std::size_t>(tensor))) +
             "\n";
  lines += fmt::format(R"({{"kind": "framework_op", "start": 2, "end": 4611686018427387904, "name": "aten::add", )"
                       R"("thread": {}, "uses": [["read", {}, 4096], ["write", {}, 4096], ["write", {}, 4096]]}})",
                       log.launches.at(0).record.thread, address(log, 0), address(log, 1), address(log, 2)) +
           "\n";
  std::ofstream{folder.file("raw/1.torch.jsonl")} << lines;
  const std::string line = "python3 -B '" + paths::source_folder() + "/tests/gpu/pointers.py' '" + folder.file("raw") +
                           "' >'" + folder.file("said") + "' 2>&1";
  CHECK(std::system(line.c_str()) == 0);
  CHECK(content_of(folder.file("said")) ==
        "raw: precision 50.0 % (1 of 2 storages that parameters point to are used by the operator), recall 33.3 % (1 "
        "of 3 "
        "that operators use); 1 pointers to no tensor\n    aten::add: precision 50.0 %, recall 33.3 % of 3\n");
}

TEST_CASE("the uses of copies and memsets are exactly the bytes that they read and write") {
  const ScratchFolder folder;
  const auto job =
      run_job(folder, "alloc a 4096\nalloc b 4096\ncopy b a+256 64\ncopy-in a 128\ncopy-out b 32\nset b 16\n");
  const raw::Log& log = job.log();
  REQUIRE(log.copies.size() == 3);
  const auto uses = uses_of(log, log.copies[0].correlation);
  REQUIRE(uses.size() == 2);
  CHECK(same(uses[0], address(log, 0) + 256, raw::Access::kRead, raw::Evidence::kCopy, 0));
  CHECK(same(uses[1], address(log, 1), raw::Access::kWrite, raw::Evidence::kCopy, 0));
  CHECK((uses[0].size == 64 && uses[1].size == 64));
  const auto in = uses_of(log, log.copies[1].correlation);  // the source is host memory, which is no use
  REQUIRE(in.size() == 1);
  CHECK(same(in[0], address(log, 0), raw::Access::kWrite, raw::Evidence::kCopy, 0));
  REQUIRE(log.memsets.size() == 1);
  const auto set = uses_of(log, log.memsets[0].correlation);
  REQUIRE(set.size() == 1);
  CHECK(set[0].size == 64);  // 16 words
}

TEST_CASE("memory from before the recording is found through pointers, and recorded once") {
  const ScratchFolder folder;
  const auto job = run_job(folder, kKernels +
                                       "hidden old 4096\nalloc b 4096\nlaunch add old+64 b 1\nlaunch add old b 2\n"
                                       "launch add 0x7fff00000000 b 1\n");
  const raw::Log& log = job.log();
  std::vector<raw::Memory> existing;
  for (const raw::Memory& memory : log.memory)
    if (memory.operation == raw::MemoryOperation::kExisting) existing.push_back(memory);
  REQUIRE(existing.size() == 1);
  CHECK(existing[0].size == 4096);
  CHECK(existing[0].device == 0);
  CHECK(existing[0].memory == raw::MemoryKind::kDevice);
  REQUIRE(log.launches.size() == 3);
  CHECK(uses_of(log, log.kernels[0].correlation).at(0).address == existing[0].address + 64);
  CHECK(log.launches[0].record.unknown_pointers == 0);
  CHECK(log.launches[2].record.unknown_pointers == 1);  // a pointer to no memory
}

TEST_CASE("mapped memory is recorded from calls of the driver, because CUPTI has no records of it") {
  const ScratchFolder folder;
  const auto job =
      run_job(folder, kKernels + "map v 2097152\nalloc b 4096\nlaunch add v+1048576 b 1\nunmap v 2097152\n");
  const raw::Log& log = job.log();
  std::vector<raw::VmmOperation> operations;
  for (const raw::Vmm& vmm : log.vmm) operations.push_back(vmm.operation);
  CHECK(operations == std::vector{raw::VmmOperation::kReserve, raw::VmmOperation::kCreate, raw::VmmOperation::kMap,
                                  raw::VmmOperation::kUnmap, raw::VmmOperation::kRelease,
                                  raw::VmmOperation::kAddressFree});
  CHECK(log.vmm.at(1).device == 0);
  CHECK(uses_of(log, log.kernels.at(0).correlation).at(0).address == log.vmm.at(2).address + 1048576);
}

TEST_CASE("a tensor map among the parameters leads to its memory") {
  const ScratchFolder folder;
  const auto job = run_job(folder,
                           "function tma triton_tma 128@0 8@128\nalloc a 4096\nalloc b 4096\ntensor-map t a+1024\n"
                           "launch tma @t b\n");
  const auto uses = uses_of(job.log(), job.log().kernels.at(0).correlation);
  REQUIRE(uses.size() == 2);
  CHECK(same(uses[0], address(job.log(), 0) + 1024, raw::Access::kTouch, raw::Evidence::kParameter, 0));
  CHECK(uses[1].parameter == 1);
}

TEST_CASE("the accesses of PyTorch's kernels through an array of addresses follow from the order of the addresses") {
  const ScratchFolder folder;
  // The arguments are (n, functor, array of three addresses). In the array, the result comes before the operands.
  const auto job =
      run_job(folder,
              "function add _ZN2at6native29vectorized_elementwise_kernelILi4ENS0_15CUDAFunctor_addIfEESt5arrayI"
              "PcLm3EELb0EEEviT0_T1_ 4@0 8@8 24@16\n"
              "alloc a 4096\nalloc b 4096\nalloc c 4096\nlaunch add 9 0 {c,a,b}\n");
  const raw::Log& log = job.log();
  const auto uses = uses_of(log, log.kernels.at(0).correlation);
  REQUIRE(uses.size() == 3);
  CHECK(same(uses[0], address(log, 2), raw::Access::kWrite, raw::Evidence::kInferred, 2));
  CHECK(same(uses[1], address(log, 0), raw::Access::kRead, raw::Evidence::kInferred, 2));
}

TEST_CASE("nodes of graphs have their arguments, whether they were captured, added, cloned or changed") {
  const auto [before, after] =
      GENERATE(std::pair{"", "set-node x n add b+64 a 1\n"}, std::pair{"", "set-any x n add b+64 a 1\n"},
               std::pair{"set-any - n add b+64 a 1\n", ""});
  const ScratchFolder folder;
  const auto job = run_job(folder, kKernels +
                                       "alloc a 4096\nalloc b 4096\nstream s\ncapture s\nlaunch add a b 1 on s\n"
                                       "end-capture g\nadd-node n g add b a 1\n" +
                                       before + "instantiate x g\ngraph x\n" + after + "graph x\n");
  const raw::Log& log = job.log();
  REQUIRE(log.kernels.size() == 4);  // two nodes, launched twice; capturing ran nothing
  CHECK(log.kernels[0].graph_node != log.kernels[1].graph_node);
  CHECK(log.kernels[0].correlation == log.kernels[1].correlation);
  const auto captured = uses_of_node(log, log.kernels[0].graph_node);
  REQUIRE(captured.size() == 2);
  CHECK(same(captured[0], address(log, 0), raw::Access::kRead, raw::Evidence::kConst, 0));
  const auto changed = uses_of_node(log, log.kernels[1].graph_node);
  REQUIRE(changed.size() == 2);
  CHECK(changed[0].address == address(log, 1) + 64);
  CHECK(uses_of(log, log.kernels[0].correlation).empty());  // the launch of the graph itself has no parameters
}

TEST_CASE("a node of a destroyed graph is not recorded again when a new graph has the same address") {
  const ScratchFolder folder;
  const auto job = run_job(
      folder, kKernels +
                  "alloc a 4096\nalloc b 4096\nadd-node n g add b a 1\ninstantiate x g\ngraph x\ndestroy-exec x\n"
                  "instantiate y g\nset-node y n add b+64 a 1\ngraph y\n");
  const raw::Log& log = job.log();
  REQUIRE(log.kernels.size() == 2);
  const auto written = [&](std::uint64_t node) {
    return std::count_if(log.launches.begin(), log.launches.end(),
                         [&](const auto& launch) { return launch.record.graph_node == node; });
  };
  CHECK(written(log.kernels[0].graph_node) == 1);
  CHECK(written(log.kernels[1].graph_node) == 2);
}

TEST_CASE("events and waits are recorded with the ids that join them") {
  const ScratchFolder folder;
  const auto job = run_job(folder, "stream s\nstream t\nevent e\nrecord e s\nwait e t\nrecord e t\n");
  const raw::Log& log = job.log();
  REQUIRE(log.event_records.size() == 2);
  REQUIRE(log.syncs.size() == 1);
  CHECK(log.syncs[0].sync_id == log.event_records[0].sync_id);
  CHECK(log.syncs[0].sync_id != log.event_records[1].sync_id);
  CHECK(log.syncs[0].sync == raw::SyncKind::kStreamWaitsEvent);
  REQUIRE(log.apis.size() == 2);  // the host's time of both calls that record an event
  CHECK(log.apis[0].correlation == log.event_records[0].correlation);
  CHECK(log.streams.size() == 2);
  CHECK(log.streams[0].handle != 0);
}

TEST_CASE("fields that an older CUPTI lacks are not read") {
  const ScratchFolder folder;
  const auto job = run_job(folder, "stream s\nevent e\nalloc a 64\nrecord e s\nwait e s\n", "FAKE_CUPTI_VERSION=22");
  CHECK(job.log().event_records.at(0).sync_id == 0);
  CHECK(job.log().memory.at(0).source == raw::Text::kEmpty);
}

TEST_CASE("NVTX ranges and marks are recorded, and those named iteration mark iterations") {
  const ScratchFolder folder;
  const auto job = run_job(folder, "push iteration-0\npush inner\npop\npop\nmark here\n");
  std::vector<std::pair<raw::RangeAction, std::string>> ranges;
  for (const raw::Range& range : job.log().ranges)
    if (range.meaning == raw::Meaning::kRange) ranges.emplace_back(range.action, job.log().text(range.name));
  using enum raw::RangeAction;
  CHECK(ranges == std::vector<std::pair<raw::RangeAction, std::string>>{
                      {kPush, "iteration-0"}, {kPush, "inner"}, {kPop, ""}, {kPop, ""}, {kMark, "here"}});
  CHECK(job.log().ranges.at(0).meaning == raw::Meaning::kIteration);
}

TEST_CASE("a kernel's name marks iterations if the program has no ranges") {
  const ScratchFolder folder;
  const auto job = run_job(folder,
                           kKernels +
                               "function step _Z9adam_stepPf 8@0\nalloc a 4096\nalloc b 4096\nrepeat 4\n"
                               "launch step a\nlaunch add a b 1\nagain\n",
                           "TIDEPOOL_SKIP=2 TIDEPOOL_ITERATIONS=1 TIDEPOOL_ITERATION_KERNEL=adam");
  REQUIRE(job.log().kernels.size() == 2);
  CHECK(job.log().text(job.log().kernels[0].name) == "_Z9adam_stepPf");
}

TEST_CASE("with PyTorch's hook, the hook's iterations are recorded") {
  // The hook reports the ends of optimizer steps. The first step makes the optimizer's state; one further step is
  // skipped.
  const ScratchFolder folder;
  std::string steps;
  for (int i = 0; i < 6; ++i)
    steps += "push iteration-" + std::to_string(i) + "\nlaunch add a b 1\npop\nhook-iteration\n";
  const std::string settings = "TIDEPOOL_RECORD_TORCH=1 TIDEPOOL_SKIP=1 TIDEPOOL_ITERATIONS=";
  const auto names = [](const raw::Log& log) {
    std::vector<std::string> pushed;
    for (const raw::Range& range : log.ranges)
      if (range.action == raw::RangeAction::kPush) {
        pushed.push_back(log.text(range.name));
        CHECK(range.meaning != raw::Meaning::kIteration);
      }
    return pushed;
  };
  const std::string script = kKernels + "alloc a 4096\nalloc b 4096\n";
  const auto job = run_job(folder, script + steps, settings + "2");
  CHECK(job.log().kernels.size() == 2);
  CHECK(names(job.log()) == std::vector<std::string>{"iteration-2", "iteration-3"});
  const ScratchFolder other;
  const auto broken = run_job(other, script + steps + "hook-end\n" + steps, settings + "9");
  CHECK(broken.log().kernels.size() == 4);  // iterations 2 to 5; then the hook ended
}

TEST_CASE("if a job ends before the iterations to record, a message says why nothing was recorded") {
  const ScratchFolder folder;
  const auto job = run_job(folder, "push iteration\npop\n", "TIDEPOOL_SKIP=10");
  CHECK(job.err ==
        "tidepool: the job ended before the iterations that were to be recorded: 1 iteration was marked, 10 to be "
        "skipped. Iterations are NVTX ranges 'iteration...'\n");
}

TEST_CASE("launches of many threads are recorded without loss or mix-up") {
  const ScratchFolder folder;
  const auto job = run_job(
      folder, kKernels + "alloc a 4096\nalloc b 4096\nthreads 8\n" + [] {
        std::string lines;
        for (int i = 0; i < 50; ++i) lines += "runtime-launch add a b 1\nlaunch add b a 1\n";
        return lines;
      }() + "join\n");
  CHECK(job.code == 0);
  const raw::Log& log = job.log();
  CHECK(log.kernels.size() == 800);
  std::set<std::uint32_t> launched, ran;
  for (const auto& [launch, first] : log.launches) launched.insert(launch.correlation);
  for (const raw::Kernel& kernel : log.kernels) ran.insert(kernel.correlation);
  CHECK(ran.size() == 800);
  CHECK(launched == ran);
}

#else

TEST_CASE("the recorder records a job on a fake driver") { recorder_is_built(); }

#endif

}  // namespace tidepool::inject_test
