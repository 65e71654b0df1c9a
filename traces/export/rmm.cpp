// Allocations as the RAPIDS Memory Manager logs them, for its replay benchmark.
#include <fmt/format.h>

#include <iterator>

#include "traces/base/refuse.hpp"
#include "traces/export/exporter.hpp"
#include "traces/export/recording.hpp"

namespace tidepool {
namespace {

/// One row for each allocation and free. A buffer that existed before and is never freed has no row in such a log.
std::string to_rmm(const Recording& recording) {
  require_addresses(recording);
  const std::vector<std::int64_t> lanes = lane_numbers(recording);
  fmt::memory_buffer out;
  fmt::format_to(std::back_inserter(out), "Thread,Time,Action,Pointer,Size,Stream\n");
  for (const RecordedBlock& event : recording.memory) {
    if (event.device != recording.memory.front().device)
      refuse("memory of device {} and of device {}; a log of RMM is of one device: import --device takes one",
             recording.memory.front().device, event.device);
    if (event.action != RecordedAction::kAlloc && event.action != RecordedAction::kFree) continue;
    const std::int64_t us = event.time.count() < 0 ? 0 : event.time.count() / 1000;
    constexpr std::int64_t kDay = std::int64_t{24} * 3600 * 1'000'000;
    const std::int64_t of_day = us % kDay, seconds = of_day / 1'000'000;
    fmt::format_to(std::back_inserter(out), "1,{:02}:{:02}:{:02}.{:06},{},{:#x},{},{}\n", seconds / 3600,
                   seconds / 60 % 60, seconds % 60, of_day % 1'000'000,
                   event.action == RecordedAction::kAlloc ? "allocate" : "free", event.address, event.size.count(),
                   lanes[event.stream.index()]);
  }
  return fmt::to_string(out);
}

const RegisterExporter kRmm{
    {.name = "rmm", .summary = "allocations as a log of the RAPIDS Memory Manager", .write_recording = to_rmm}};

}  // namespace
}  // namespace tidepool
