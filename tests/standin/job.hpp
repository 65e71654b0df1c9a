// Running a job on the stand-in driver with the recorder in it.
#pragma once

#include <sys/wait.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "tests/program.hpp"
#include "tests/skip.hpp"
#include "tracer/raw/reader.hpp"

namespace tidepool::tests {

/// Skips the test where the recorder could not be built.
inline bool recorder_is_built() {
#ifdef TIDEPOOL_INJECT
  return true;
#else
  skip("no cuda.h and cupti.h when this was built (./setup.sh cuda-headers fetches them)");
  return false;
#endif
}

#ifdef TIDEPOOL_INJECT

/// A kernel that adds two vectors, and one that takes a struct of 24 bytes.
inline const std::string kKernels =
    "function add _Z3addPKfPfi 8@0 8@8 4@16\n"
    "function list _Z4many4ListPf 24@0 8@24\n";

struct RecordedJob {
  int code = 0;                ///< exit code; -1 if a signal ended it
  std::string err;             ///< stderr
  std::vector<raw::Log> logs;  ///< of all its processes, in the order of their paths
  const raw::Log& log() const { return logs.at(0); }
};

/// Plays a script with the recorder injected. @param variables  as in "STANDIN_FAULTS=duplicate TIDEPOOL_SKIP=2"
inline RecordedJob run_job(const ScratchFolder& folder, const std::string& script, const std::string& variables = "") {
  std::ofstream{folder.file("script")} << script;
  const std::string line = "TIDEPOOL_RAW=" + folder.file("raw") +
                           " CUDA_INJECTION64_PATH=" TIDEPOOL_INJECT " NVTX_INJECTION64_PATH=" TIDEPOOL_INJECT
                           " TIDEPOOL_CUPTI=" TIDEPOOL_STANDIN_CUPTI " " +
                           variables + " " TIDEPOOL_STANDIN_JOB " " + folder.file("script") + " 2>" +
                           folder.file("err");
  const int status = std::system(line.c_str());
  RecordedJob job;
  job.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  job.err = content_of(folder.file("err"));
  std::vector<std::string> paths;
  if (std::filesystem::exists(folder.file("raw")))
    for (const auto& entry : std::filesystem::directory_iterator{folder.file("raw")})
      paths.push_back(entry.path().string());
  std::sort(paths.begin(), paths.end());
  for (const std::string& path : paths) job.logs.push_back(raw::read_raw(read_input(path)));
  return job;
}

/// The uses of the launch of the same correlation as a kernel or copy; empty if there is none.
inline std::vector<raw::BufferUse> uses_of(const raw::Log& log, std::uint32_t correlation) {
  for (const auto& [launch, first] : log.launches)
    if (launch.correlation == correlation)
      return {log.uses.begin() + static_cast<std::ptrdiff_t>(first),
              log.uses.begin() + static_cast<std::ptrdiff_t>(first + launch.uses)};
  return {};
}

/// Of the last node record of a graph.
inline std::vector<raw::BufferUse> uses_of_node(const raw::Log& log, std::uint64_t node) {
  std::vector<raw::BufferUse> found;
  for (const auto& [launch, first] : log.launches)
    if (launch.correlation == 0 && launch.graph_node == node)
      found.assign(log.uses.begin() + static_cast<std::ptrdiff_t>(first),
                   log.uses.begin() + static_cast<std::ptrdiff_t>(first + launch.uses));
  return found;
}

#endif

}  // namespace tidepool::tests
