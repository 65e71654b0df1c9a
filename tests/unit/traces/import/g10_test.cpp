#include <fmt/format.h>

#include <filesystem>

#include "tests/catch.hpp"
#include "tests/importing.hpp"
#include "tests/program.hpp"
#include "traces/import/importer.hpp"

namespace tidepool::g10_test {

using tidepool::tests::program;

namespace {

const std::string kTensors =
    "tensor0 Is weight (global)?: 1, Size in byte: 100, Range:0--100\n"
    "tensor1 Is weight (global)?: 0, Size in byte: 40, Range:0--40\n"
    "tensor2 Is weight (global)?: 0, Size in byte: 8, Range:40--48\n"
    "tensor3 Is weight (global)?: 0, Size in byte: 7, Range:48--55\n";
const std::string kKernels =
    "Kernel ID: 0, Name: Linear_Forward\nParent OP ID:4; Name: Linear\nExecution Time: 2400\nInput Tensors:\n"
    "tensor0 Is weight (global)?: 1, Size in byte: 100, Range:0--100\n"
    "Output Tensors:\n"
    "tensor1 Is weight (global)?: 0, Size in byte: 40, Range:0--40\n"
    "____________________________________________________________________\n"
    "Kernel ID: 1, Name: Linear_Backward_Weight\nInput Tensors:\n"
    "tensor1 Is weight (global)?: 0, Size in byte: 40, Range:0--40\n"
    "Output Tensors:\n"
    "tensor2 Is weight (global)?: 0, Size in byte: 8, Range:40--48\n"
    "Kernel ID: 2, Name: Apply_Grad\nInput Tensors:\n"
    "tensor0 Is weight (global)?: 1, Size in byte: 100, Range:0--100\n"
    "tensor2 Is weight (global)?: 0, Size in byte: 8, Range:40--48\n"
    "Output Tensors:\n"
    "tensor0 Is weight (global)?: 1, Size in byte: 100, Range:0--100\n";
const std::string kTimes = "0000 0.002 ms\n0001 599.213074 ms\n0002 1 ms\n";

Trace read(const std::string& kernels, const std::string& tensors, const std::string& times) {
  return read_g10(Input{"kernels.config", kernels}, Input{"tensors.config", tensors}, Input{"times.txt", times});
}

std::string refusal(const std::string& kernels, const std::string& tensors, const std::string& times) {
  try {
    read(kernels, tensors, times);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

std::string load_error(const std::string& path, const std::string& format = "auto") {
  try {
    load_trace(path, format);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("G10's tables become a step: global tensors stay, others live from their first to their last use") {
  const Trace trace = read(kKernels, kTensors, kTimes);
  CHECK(program(trace) == std::vector<std::string>{"alloc 1", "run Linear_Forward", "alloc 2",
                                                   "run Linear_Backward_Weight", "free 1", "run Apply_Grad", "free 2"});
  CHECK(trace.buffers().size() == 3);  // nothing uses tensor3
  CHECK(trace.buffers()[0].born_before);
  CHECK(trace.buffers()[0].outlives);
  CHECK(trace.op(OpId{0}).duration == 2_us);
  CHECK(trace.op(OpId{1}).duration == Nanos{599'213'074});
  CHECK(trace.op(OpId{2}).start == Nanos{599'215'074});
  CHECK(trace.op(OpId{0}).phase == Phase::kForward);
  CHECK(trace.op(OpId{1}).phase == Phase::kBackward);
  CHECK(trace.op(OpId{2}).phase == Phase::kOptimizer);
  CHECK(trace.uses(OpId{2})[0].access == Access::kReadWrite);
  CHECK(trace.uses(OpId{0})[1].access == Access::kWrite);
  CHECK(trace.ideal_peak() == 148_B);
}

TEST_CASE("wrong tables of G10 are refused with the line and the reason") {
  const auto changed = [](std::string text, const std::string& from, const std::string& to) {
    return text.replace(text.find(from), from.size(), to);
  };
  CHECK(refusal("", kTensors, kTimes) == "kernels.config: no kernel; expected Kernel ID: 0, Name: and a name");
  CHECK(refusal(changed(kKernels, "Kernel ID: 1", "Kernel ID: 3"), kTensors, kTimes) ==
        "kernels.config:9: 'Kernel ID: 3, Name: Linear_Backward_Weight'; expected Kernel ID: 1, Name: and a name");
  CHECK(refusal("Kernel ID: 0, Name: caf\xe9\n", kTensors, kTimes) ==
        "kernels.config:1: the kernel is 'caf?', which is not UTF-8; expected a file in UTF-8");
  CHECK(refusal("Input Tensors:\n", kTensors, kTimes) == "kernels.config:1: 'Input Tensors:' before any kernel");
  CHECK(refusal("Kernel ID: 0, Name: a\ntensor0 x\n", kTensors, kTimes) ==
        "kernels.config:2: a tensor outside of Input Tensors: and Output Tensors:");
  CHECK(refusal("hello\n", kTensors, kTimes) ==
        "kernels.config:1: 'hello'; expected a kernel, its Input Tensors:, its Output Tensors: or a tensor");
  CHECK(refusal(changed(kKernels, "tensor2", "tensor9"), kTensors, kTimes) ==
        "kernels.config:13: tensor9 is not in the table of tensors");
  CHECK(refusal(changed(kKernels, "byte: 40", "byte: 41"), kTensors, kTimes) ==
        "kernels.config:7: tensor1 has 41 bytes and is not global; the table of tensors has 40 bytes and not global");
  CHECK(refusal(kKernels, changed(kTensors, "tensor2", "tensor1"), kTimes) ==
        "tensors.config:3: tensor1 is listed a second time");
  CHECK(refusal(kKernels, "tensor0 Is weight (global)?: 2, Size in byte: 1\n", kTimes) ==
        "tensors.config:1: 'tensor0 Is weight (global)?: 2, Size in byte: 1'; expected a tensor, as in tensor5 Is "
        "weight (global)?: 1, Size in byte: 8192");
  CHECK(refusal(kKernels, kTensors, changed(kTimes, "599.213074 ms", "599.2 s")) ==
        "times.txt:2: '0001 599.2 s'; expected a kernel and its time, as in 0001 599.213074 ms");
  CHECK(refusal(kKernels, kTensors, changed(kTimes, "0002", "0003")) == "times.txt:3: kernel 3; expected kernel 2");
  CHECK(refusal(kKernels, kTensors, kTimes + "0003 1 ms\n") ==
        "times.txt:4: a time for kernel 3; the table of kernels has 3");
  CHECK(refusal(kKernels, kTensors, "0000 1 ms\n") ==
        "times.txt: times for 1 of the 3 kernels in the table of kernels; expected one for each");
}

TEST_CASE("G10's three tables are read from a folder, or from the table of kernels and the others beside it") {
  const ScratchFolder scratch;
  const std::string folder = scratch.file("run");
  std::filesystem::create_directory(folder);
  CHECK(load_error(folder) ==
        folder + ": a folder without kernels.config; expected a file, or a folder with G10\'s three tables");
  CHECK(load_error(folder, "dtr") ==
        folder + ": is a folder; expected one file, or for g10 or raw or raw-kernels or raw-operators a folder");
  write_file(folder + "/a_kernels.config", kKernels);
  write_file(folder + "/a_tensors.config", kTensors);
  CHECK(load_error(folder) ==
        folder + ": a folder without .txt with kernel times; expected a file, or a folder with G10\'s three tables");
  write_file(folder + "/a_times.txt", kTimes);
  write_file(folder + "/a_timesPF.txt", kTimes);
  const Trace trace = load_trace(folder, "g10");
  CHECK(trace.ops().size() == 3);
  write_file(folder + "/b_kernels.config", kKernels);
  CHECK(load_error(folder) ==
        folder + ": " + folder + "/a_kernels.config and " + folder + "/b_kernels.config; expected one kernels.config");
  CHECK(load_trace(folder + "/a_kernels.config").hash() == trace.hash());
  CHECK(load_error(folder + "/b_kernels.config") ==
        folder + ": a folder without b_tensors.config; expected a file, or a folder with G10\'s three tables");
}

TEST_CASE("times of G10's kernels whose sum overflows are refused") {
  std::string kernels, times;
  for (int i = 0; i < 2306; ++i) {  // 10^15 ns each; the limit of 2^61 ns is 2305.8 times that
    kernels += fmt::format("Kernel ID: {}, Name: Linear_Forward\n", i);
    times += fmt::format("{:04} 1000000000 ms\n", i);
    if (i == 2304) CHECK(refusal(kernels, kTensors, times).empty());
  }
  CHECK(refusal(kernels, kTensors, times) == "times.txt:2306: the times add up to more than 2305843009213693952");
}

}  // namespace tidepool::g10_test
