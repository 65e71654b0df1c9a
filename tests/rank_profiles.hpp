// Kineto files of ranks, written by hand: an all-reduce of 1 KiB with a common end, and a wait of the host for it.
#pragma once

#include <fmt/format.h>

#include <string>

namespace tidepool::tests {

/// Times are in us. The rank launches its all-reduce at 100; the all-reduce starts at `arrival` and ends at 1000. The
/// host waits for it from 130 to 1010, and launches a kernel of 50 us at 1020; the kernel starts at 1025.
inline std::string rank_profile(int rank, int arrival, const std::string& collective = "all_reduce") {
  const auto span = [](const std::string& category, const std::string& name, int thread, int begin, int duration,
                       const std::string& args) {
    return fmt::format(
        R"({{"ph": "X", "cat": "{}", "name": "{}", "pid": 1, "tid": {}, "ts": {}, "dur": {}, "args": {{{}}}}},)",
        category, name, thread, begin, duration, args);
  };
  const auto launched = [&](const std::string& name, int launch, int start, int duration, int stream) {
    const std::string correlation = fmt::format(R"("correlation": {})", launch);
    return span("cuda_runtime", "cudaLaunchKernel", 1, launch, 5, correlation) +
           span("kernel", name, 7, start, duration,
                fmt::format(R"("device": 0, "stream": {}, {})", stream, correlation));
  };
  std::string events = launched("gemm", 10, 20, 30, 7);
  events += span("cuda_runtime", "cudaStreamWaitEvent", 1, 60, 1, R"("correlation": 60)");
  events +=
      span("user_annotation", "nccl:" + collective, 1, 90, 20, R"("Input Dims": [[256]], "Input type": ["float"])");
  events += launched("ncclKernel_AllReduce", 100, arrival, 1000 - arrival, 8);
  events += span("cuda_runtime", "cudaStreamSynchronize", 1, 130, 880, R"("correlation": 130)");
  events += launched("gemm", 1020, 1025, 50, 7);
  events.pop_back();
  return fmt::format(
      R"({{"schemaVersion": 1, "deviceProperties": [{{"id": 0, "name": "V100"}}], "distributedInfo": {{"rank": {}}},)"
      R"( "traceEvents": [{}]}})",
      rank, events);
}

}  // namespace tidepool::tests
