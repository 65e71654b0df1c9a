// Running a job on the fake driver with the recorder in it.
#pragma once

#include <sys/wait.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "tests/paths.hpp"
#include "tests/program.hpp"
#include "tests/skip.hpp"
#include "tracer/raw/reader.hpp"
#include "traces/base/error.hpp"

namespace tidepool::tests {

/// Skips the test if the recorder could not be built.
inline bool recorder_is_built() {
#ifdef TIDEPOOL_WITH_RECORDER
  return true;
#else
  skip("no cuda.h and cupti.h when this was built (./setup.sh cuda-headers fetches them)");
  return false;
#endif
}

#ifdef TIDEPOOL_WITH_RECORDER

/// Lines of a script: a kernel that adds two vectors, and one that takes a struct of 24 bytes and a pointer.
inline const std::string kKernels =
    "function add _Z3addPKfPfi 8@0 8@8 4@16\n"
    "function list _Z4many4ListPf 24@0 8@24\n";

/// A variable that lets the recorder wait for CUPTI and the disk at the end of a job, however busy the machine is.
inline const std::string kPatience = "TIDEPOOL_FLUSH_LIMIT_MS=60000";

struct RecordedJob {
  int code = 0;                ///< exit code; if a signal ended it, 128 + its number, or -1 with some shells
  std::string err;             ///< stderr
  std::vector<raw::Log> logs;  ///< of all its processes, in the order of their paths
  const raw::Log& log() const { return logs.at(0); }
};

/// The records so far: a log for each file in the folder "raw", in the order of their paths.
inline std::vector<raw::Log> recorded(const ScratchFolder& folder) {
  std::vector<std::string> paths;
  if (std::filesystem::exists(folder.file("raw")))
    for (const auto& entry : std::filesystem::directory_iterator{folder.file("raw")})
      paths.push_back(entry.path().string());
  std::sort(paths.begin(), paths.end());
  std::vector<raw::Log> logs;
  for (const std::string& path : paths) logs.push_back(raw::read_raw(read_input(path)));
  return logs;
}

/// A point of a script, line(), at which the job waits until `opens` returns true in the test.
struct Gate {
  std::string path;
  std::function<bool()> opens;
  std::string line() const { return "await " + path + "\n"; }
};

/// Opens when a condition holds for the log of the first file. Keeps a reference to `folder`.
inline Gate gate_until(const ScratchFolder& folder, const std::function<bool(const raw::Log&)>& holds) {
  return {folder.file("written"), [&folder, holds] {
            try {
              const std::vector<raw::Log> logs = recorded(folder);
              return !logs.empty() && holds(logs[0]);
            } catch (const InputError&) {
              return false;  // being written
            }
          }};
}

/// Opens when the first file has at least so many records of kernels and of launches.
inline Gate gate_until_written(const ScratchFolder& folder, std::size_t kernels, std::size_t launches) {
  return gate_until(folder, [kernels, launches](const raw::Log& log) {
    return log.kernels.size() >= kernels && log.launches.size() >= launches;
  });
}

/// Opens when a text has appeared on the job's stderr at least `times` times.
inline Gate gate_until_said(const ScratchFolder& folder, const std::string& text, std::size_t times = 1) {
  return {folder.file(text + std::to_string(times)), [&folder, text, times] {
            const std::string said = content_of(folder.file("err"));
            std::size_t count = 0;
            for (std::size_t at = 0; (at = said.find(text, at)) != std::string::npos; ++at) ++count;
            return count >= times;
          }};
}

/// Plays a script with the recorder injected.
/// @param variables  as in "FAKE_FAULTS=duplicate TIDEPOOL_SKIP=2"; they may change the variable in kPatience
/// @param gates      in the order in which the script has their lines
inline RecordedJob run_job(const ScratchFolder& folder, const std::string& script, const std::string& variables = "",
                           const std::vector<Gate>& gates = {}) {
  std::ofstream{folder.file("script")} << script;
  std::jthread gatekeeper{[&gates](const std::stop_token& over) {
    for (const Gate& gate : gates) {
      while (!over.stop_requested() && !gate.opens()) std::this_thread::sleep_for(std::chrono::milliseconds{5});
      std::ofstream{gate.path};
    }
  }};
  const std::string line =
      "TIDEPOOL_RAW=" + folder.file("raw") + " CUDA_INJECTION64_PATH=" + paths::recorder_library() +
      " NVTX_INJECTION64_PATH=" + paths::recorder_library() + " TIDEPOOL_CUPTI=" + paths::fake_cupti() + " " +
      kPatience + " " + variables + " " + paths::fake_job() + " " + folder.file("script") + " 2>" + folder.file("err");
  const int status = std::system(line.c_str());
  gatekeeper = {};
  RecordedJob job;
  job.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  job.err = content_of(folder.file("err"));
  job.logs = recorded(folder);
  return job;
}

/// The uses of the launch with the correlation of a kernel or copy; empty if there is none.
inline std::vector<raw::BufferUse> uses_of(const raw::Log& log, std::uint32_t correlation) {
  for (const auto& [launch, first] : log.launches)
    if (launch.correlation == correlation)
      return {log.uses.begin() + static_cast<std::ptrdiff_t>(first),
              log.uses.begin() + static_cast<std::ptrdiff_t>(first + launch.uses)};
  return {};
}

/// The uses of the last record of a graph's node; empty if there is none.
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
