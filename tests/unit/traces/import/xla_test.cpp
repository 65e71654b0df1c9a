// Readers of XLA's and TensorFlow's texts.
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/catch.hpp"
#include "tests/importing.hpp"
#include "tests/program.hpp"
#include "traces/import/importer.hpp"

namespace tidepool::xla_test {

using namespace tidepool::literals;
using tests::complaint;
using tests::program;

namespace {

using Names = std::vector<std::string>;

// x is a parameter; b is written over a, as they share a place while both live; the fusion's inside has no range.
constexpr const char* kAssignment =
    "BufferAssignment:\n"
    "allocation 0: size 400, parameter 0, shape |f32[100]| at ShapeIndex {}:\n"
    " value: <1 x.1 @0> (size=400,offset=0): f32[100]{0}\n"
    "allocation 1: size 4, thread-local:\n"
    " value: <0 add.9 @0> (size=4,offset=0): f32[]\n"
    "allocation 2: size 1024, preallocated-temp:\n"
    " value: <2 a @0> (size=256,offset=0): f32[64]{0}\n"
    " value: <3 b{0} (phi) @0> (size=256,offset=0): f32[64]{0}\n"
    " value: <4 c @0> (size=512,offset=512): f32[128]{0}\n"
    "\nTotal bytes used: 1428 (1.4KiB)\n";
constexpr const char* kRanges =
    "HloLiveRange (max 4):\n  InstructionSequence:\n    0:x.1\n    1:a\n    2:b\n    3:c\n  BufferLiveRange:\n"
    "    x.1{}:0-4\n    a{}:1-2\n    b{0}:2-3\n    c{}:3-4\n  Live ranges at 3 (peak):\n    c{}: 512 bytes\n";

}  // namespace

TEST_CASE("XLA's buffer assignment gives lifetimes with XLA's addresses") {
  const Trace trace = read_xla_buffers(Input{"a.txt", kAssignment}, Input{"r.txt", kRanges});
  CHECK(program(trace) == Names{"run x.1", "alloc 1", "run a", "run b", "alloc 2", "run c", "free 1"});
  CHECK(trace.text(trace.buffer(BufferId{1}).name) == "a");
  CHECK(trace.buffer(BufferId{1}).address == 404);
  CHECK(trace.buffer(BufferId{2}).address == 404 + 512);
  CHECK(trace.buffer(BufferId{2}).outlives);
  CHECK(trace.ideal_peak() == 1168_B);                    // 400 + 256 + 512
  CHECK(trace.data().meta.at("placed_bytes") == "1428");  // as the file says
}

TEST_CASE("live ranges of XLA are found in the same file and beside it") {
  const Trace whole = read_xla_buffers(Input{"a.txt", kAssignment}, Input{"r.txt", kRanges});
  CHECK(load_trace(Input{"a.txt", std::string{kAssignment} + kRanges}).hash() == whole.hash());
  const ScratchFolder folder;
  const std::string file = folder.file("jit_f.cpu_after_optimizations-buffer-assignment.txt");
  std::ofstream{file} << kAssignment;
  CHECK(run_program({"import", file, "-o", folder.file("f.tide")}).err ==
        "tidepool: " + file + ": no live ranges; expected them beside it, in *live-range.txt, or given by --with\n");
  const std::string beside = folder.file("jit_f.cpu_after_optimizations-live-range.txt");
  std::ofstream{beside} << kRanges;
  CHECK(load_trace(file).hash() == whole.hash());
  std::filesystem::rename(beside, folder.file("ranges.txt"));
  CHECK(load_trace(file, "auto", {}, folder.file("ranges.txt")).hash() == whole.hash());

  run_program({"import", file, "--with", folder.file("ranges.txt"), "-o", folder.file("f.tide")});
  CHECK_THAT(run_program({"pack", folder.file("f.tide")}).out,
             ContainsSubstring("load 1.141 KiB; XLA placed them in 1.395 KiB\n"));
}

TEST_CASE("messages about XLA's buffer assignments") {
  const auto said = [](const std::string& assignment, const char* ranges) {
    return complaint([&](const Input& input) { read_xla_buffers(input, Input{"r.txt", ranges}); }, assignment);
  };
  CHECK(said("BufferAssignment:\n", kRanges) ==
        "t.log:1: no allocation; expected lines as in 'allocation 0: size 4096, parameter 0'");
  CHECK(said("allocation 0: size x, constant:\n", kRanges) ==
        "t.log:1: 'allocation 0: size x, constant:'; expected the size of an allocation, as in size 4096");
  CHECK(said("allocation 0: size 4, constant:\n value: <1 x.1 @0> (size=4,offset=4): f32[]\n", kRanges) ==
        "t.log:2: a value of 4 B at offset 4; expected one within its allocation of 4 B");
  CHECK(said("allocation 0: size 4, constant:\n value: <1 x.1 @0> (size=4): f32[]\n", kRanges) ==
        "t.log:2: '1 x.1 @0> (size=4): f32[]'; expected a value with size and offset");
  CHECK(said(kAssignment, "x") == "r.txt: no live ranges; expected HloLiveRange and BufferLiveRange");
  CHECK(said(kAssignment, "InstructionSequence:\n1:a\n") == "r.txt:2: '1:a'; expected instruction 0");
  CHECK(said(kAssignment, "BufferLiveRange:\na{}:4-1\n") ==
        "r.txt:2: 'a{}:4-1'; expected a value and its live range, as in p.1{}:0-40");
}

TEST_CASE("XLA's list of the largest buffers gives sizes by shape, and lines") {
  const Trace trace = load_trace(Input{
      "job.log",
      "E RESOURCE_EXHAUSTED: Out of memory while trying to allocate 6291456 bytes.\nPeak buffers:\n\tBuffer 1:\n"
      "\t\tSize: 6.00MiB\n\t\tOperator: op_name=\"jit(f)/concatenate[dimension=0]\" source_file=\"/home/ada/net.py\" "
      "source_line=689\n\t\tXLA Label: concatenate\n\t\tShape: f32[4096,128,3]\n\t\t==========\n\n\tBuffer 2:\n"
      "\t\tSize: 384.0KiB\n\t\tEntry Parameter Subshape: f32[256,128,3]\n\t\t==========\n\n\tBuffer 3:\n"
      "\t\tSize: 1.50MiB\n\t\tXLA Label: fusion\n\t\tShape: (f32[2], bf16[7])\n"});
  REQUIRE(trace.buffers().size() == 3);
  CHECK(trace.buffer(BufferId{0}).size == 6291456_B);
  CHECK(trace.text(trace.buffer(BufferId{0}).name) == "jit(f)/concatenate[dimension=0] f32[4096,128,3]");
  CHECK(trace.text(trace.buffer(BufferId{0}).line) == "/home/ada/net.py:689");
  CHECK(trace.buffer(BufferId{1}).size == 393216_B);
  CHECK(trace.buffer(BufferId{2}).size == 1572864_B);  // the shape is of other bytes
  CHECK(complaint(read_xla_oom, "Peak buffers:\n") ==
        "t.log: no buffer; expected XLA's text with 'Peak buffers:' and 'Buffer 1:'");
  CHECK(complaint(read_xla_oom, "Peak buffers:\nBuffer 1:\nSize: much\n") ==
        "t.log:3: the size is 'much'; expected one as in 6.00MiB");
}

TEST_CASE("the dump of TensorFlow's allocator gives the chunks in use, with addresses") {
  const std::string at = "2021-03-15 17:16:57.334891: I tensorflow/core/common_runtime/bfc_allocator.cc:1011] ";
  const Trace trace = load_trace(
      Input{"job.log", at + "InUse at 9000 of size 64 next 1\n" + at +
                           "Allocator (GPU_0_bfc) ran out of memory. Current allocation summary follows.\n" + at +
                           "Next region of size 1048576\n" + at + "InUse at 7f00 of size 1280 next 1\n" + at +
                           "Free  at 8400 of size 256 next 7\n" + at +
                           "InUse at c018b5d00 of size 256 by op Fill action_count 27 step 0 next 654\n" + at +
                           "Chunk at 0x10005a00000 of size 512\n"});
  REQUIRE(trace.buffers().size() == 3);
  CHECK(trace.buffer(BufferId{0}).address == 0x7f00);
  CHECK(trace.text(trace.buffer(BufferId{1}).name) == "Fill");
  CHECK(trace.buffer(BufferId{2}).address == 0x10005a00000);
  CHECK(trace.ideal_peak() == 2048_B);
  CHECK(trace.data().meta.at("reserved_peak_bytes") == "1048576");
  CHECK(complaint(read_tf_oom, "x\n") ==
        "t.log: no chunk in use; expected the lines of bfc_allocator.cc from TensorFlow's log");
  CHECK(complaint(read_tf_oom, at + "InUse at 7f00 of size few\n") ==
        "t.log:1: the size is 'few'; expected a whole number of bytes");
}

}  // namespace tidepool::xla_test
