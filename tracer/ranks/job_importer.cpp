// The importers of raw captures for jobs of several ranks: `tidepool import` of the folder of a run.
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tracer/lower/rank_files.hpp"
#include "tracer/ranks/recorded_job.hpp"
#include "traces/base/folder.hpp"
#include "traces/base/input.hpp"
#include "traces/job/job_import.hpp"

namespace tidepool {
namespace {

/// Whether the names of the files, as in 4711.dry.raw, are of one process. Its rank has no others beside it.
bool of_one_process(const std::string& folder) {
  std::set<std::string> processes;
  for (const std::string& path : files_in(folder)) {
    const std::string name = std::filesystem::path{path}.filename().string();
    processes.insert(name.substr(0, name.find('.')));
  }
  return processes.size() < 2;
}

std::optional<ReadJob> read_ranks(const std::string& folder, LoweredOps ops) {
  if (of_one_process(folder)) return {};
  std::vector<raw::Log> logs = read_captures(folder);
  if (count_ranks(logs) < 2) return {};
  RecordedJob recorded =
      join_recorded(folder, by_rank(folder, std::move(logs)), ops, [](LoweredRank rank) { return rank; });
  std::vector<std::string> notes = notes_of(recorded);
  return ReadJob{.job = std::move(recorded.job), .notes = std::move(notes)};
}

RegisterJobReader reader(std::string format, LoweredOps ops) {
  return RegisterJobReader{
      {.format = std::move(format), .read = [ops](const std::string& folder) { return read_ranks(folder, ops); }}};
}

const RegisterJobReader kIterations{reader("raw", LoweredOps::kIterations)};
const RegisterJobReader kAllKernels{reader("raw-kernels", LoweredOps::kKernels)};
const RegisterJobReader kAllOperators{reader("raw-operators", LoweredOps::kOperators)};

}  // namespace
}  // namespace tidepool
