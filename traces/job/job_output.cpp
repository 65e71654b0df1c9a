#include "traces/job/job_output.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <span>
#include <system_error>
#include <vector>

#include "traces/base/error.hpp"
#include "traces/base/input.hpp"
#include "traces/base/output.hpp"
#include "traces/base/refuse.hpp"
#include "traces/file/writer.hpp"

namespace tidepool {
namespace {

struct OutputFile {
  std::string path, bytes;
};

/// Writes all files under other names, then renames them. So none is replaced if the content of one cannot be written.
void write_together(const std::vector<OutputFile>& files) {
  const Unbroken unbroken;
  std::vector<std::string> unfinished;
  try {
    for (const OutputFile& file : files) unfinished.push_back(write_beside(file.path, file.bytes));
    for (std::size_t i = 0; i < files.size(); ++i) std::filesystem::rename(unfinished[i], files[i].path);
  } catch (...) {
    std::error_code gone;
    for (const std::string& name : unfinished) std::filesystem::remove(name, gone);
    throw;
  }
}

std::string trace_name(const std::filesystem::path& job, std::size_t rank) {
  return fmt::format("{}.rank{}.tide", job.stem().string(), rank);
}

/// The trace files of the job that is at `path` now, as far as they have the names that write_job() gives; none if
/// there is no job file.
std::vector<std::string> traces_to_replace(const std::filesystem::path& path) {
  std::vector<std::string> traces;
  if (!is_job_file(path.string())) return traces;
  try {
    const Job job = parse_job(read_input(path.string()));
    for (std::size_t rank = 0; rank < job.ranks.size(); ++rank)
      if (job.ranks[rank].trace == trace_name(path, rank)) traces.push_back(job.ranks[rank].trace);
  } catch (const InputError&) {  // a damaged file says nothing about the files beside it
  }
  return traces;
}

}  // namespace

void require_file_name(const std::string& path) {
  if (std::filesystem::exists(path) && !std::filesystem::is_regular_file(path))
    refuse("{}: is no file; expected a file, with the traces beside it", path);
  require_writable(path);
}

void write_job(const std::string& path, LoadedJob& job) {
  require_file_name(path);
  const std::filesystem::path output = path;
  std::vector<OutputFile> files;
  for (std::size_t rank = 0; rank < job.traces.size(); ++rank) {
    JobRank& known = job.job.ranks[rank];
    known.hash = job.traces[rank].hash();
    const auto ranks = std::span{job.job.ranks}.first(rank);
    const auto same = std::find_if(ranks.begin(), ranks.end(), [&](const JobRank& r) { return r.hash == known.hash; });
    if (same != ranks.end()) {
      known.trace = same->trace;
      continue;
    }
    known.trace = trace_name(output, rank);
    files.push_back({(output.parent_path() / known.trace).string(), to_trace_file(job.traces[rank])});
  }
  files.push_back({path, job_file(job.job)});
  const std::vector<std::string> replaced = traces_to_replace(output);
  write_together(files);
  for (const std::string& old : replaced)
    if (std::none_of(job.job.ranks.begin(), job.job.ranks.end(), [&](const JobRank& r) { return r.trace == old; }))
      if (std::error_code ignored; std::filesystem::is_regular_file(output.parent_path() / old, ignored))
        std::filesystem::remove(output.parent_path() / old, ignored);  // an old file that stays does no harm
}

}  // namespace tidepool
