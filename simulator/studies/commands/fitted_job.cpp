#include "simulator/studies/commands/fitted_job.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <utility>

#include "simulator/studies/fit/fit.hpp"
#include "traces/base/error.hpp"
#include "traces/base/input.hpp"
#include "traces/base/text.hpp"
#include "traces/import/importer.hpp"

namespace tidepool {

FittedJob job_of_file(const std::string& path) {
  const auto job_of = [&](Trace trace, std::optional<RecordedMemory> recorded) {
    std::string failure = failure_of(trace);
    return FittedJob{.name = path,
                     .trace = std::move(trace),
                     .recorded = std::move(recorded),
                     .history = {},
                     .failure = std::move(failure),
                     .hint = "",
                     .said = ""};
  };
  if (std::filesystem::is_directory(path)) return job_of(load_trace(path), {});
  const Input input = read_trace_input(path, "auto");
  if (find_importer(input, "auto").name != "torch-snapshot") {
    FittedJob job = job_of(load_trace(input), {});
    const auto& meta = job.trace.data().meta;
    if (const auto most = meta.find("reserved_peak_bytes"); most != meta.end() && meta.at("source") == "kineto")
      job.recorded =
          RecordedMemory{.most_reserved = parse_bytes(most->second + "B"), .capacity = {}, .failed_request = {}};
    return job;
  }
  try {
    const TorchSnapshot snapshot = parse_torch_snapshot(input.bytes());
    const RecordedMemory recorded = recorded_memory(snapshot);
    SnapshotHistory history;
    const bool known = !recorded.lacks_segments || recorded.failed_request;
    FittedJob job =
        job_of(device_trace(snapshot, recorded.device, &history), known ? std::optional{recorded} : std::nullopt);
    job.history = std::move(history);
    job.devices = devices_with_memory(snapshot).size();
    return job;
  } catch (const InputError& error) {
    throw error.at(path);
  }
}

FittedJob job_of_recording(const std::vector<std::string>& command, DryRecording recording) {
  return FittedJob{.name = fmt::format("{}", fmt::join(command, " ")),
                   .command = command,
                   .trace = std::move(recording.traces.front()),
                   .recorded = {},
                   .history = {},
                   .stopped = recording.stopped,
                   .failure = std::move(recording.failure),
                   .hint = std::move(recording.hint),
                   .said = std::move(recording.said)};
}

}  // namespace tidepool
