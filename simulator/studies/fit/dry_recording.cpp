#include "simulator/studies/fit/dry_recording.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "simulator/studies/launch/process.hpp"
#include "simulator/studies/text/interruptible.hpp"
#include "traces/base/refuse.hpp"
#include "traces/import/importer.hpp"
#include "traces/job/job.hpp"

namespace tidepool {
namespace {

namespace fs = std::filesystem;

constexpr int kPatience = 10;  // seconds until a job that ignores SIGTERM is killed
constexpr int kStopped = 124;  // exit status of the program `timeout` if it stopped the job
constexpr std::size_t kLinesSaid = 40;
constexpr int kTries = 50;  // attempts to remove a folder while an ending job still writes to it
constexpr std::chrono::milliseconds kPause{100};

class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (fs::temp_directory_path() / "tidepool-fit-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) refuse("{}: no folder for a recording can be made here", name);
    path_ = name;
  }
  /// Removes the folder. A job that was told to end may still write to it, so removal is tried several times.
  ~TemporaryFolder() {
    std::error_code error;
    for (int i = 0; i < kTries && fs::remove_all(path_, error) != 0 && error; ++i) std::this_thread::sleep_for(kPause);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

std::string program_path() { return fs::read_symlink("/proc/self/exe").string(); }

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream{text};
  for (std::string line; std::getline(stream, line);)
    if (line.find_first_not_of(" \t\r") != std::string::npos) lines.push_back(line);
  return lines;
}

std::string last_lines(const std::string& text) {
  const std::vector<std::string> lines = lines_of(text);
  std::string last;
  for (std::size_t i = lines.size() - std::min(lines.size(), kLinesSaid); i < lines.size(); ++i)
    last += lines[i] + "\n";
  return last;
}

/// The exception in the recorder's line about the end of the job, or else the line before; the last line if the
/// recorder printed none. "" if that
/// is the recorder's own: the job ended well, and the recording lacks something, as the operators of an optimizer.
std::string failure_in(const std::string& said) {
  const std::string recorder = "tidepool: ", ending = recorder + "the job ";
  const std::vector<std::string> lines = lines_of(said);
  for (std::size_t i = lines.size(); i-- > 0;)
    if (lines[i].starts_with(ending)) {
      const std::size_t open = lines[i].find(" (");
      if (open != std::string::npos && lines[i].ends_with(')'))
        return lines[i].substr(open + 2, lines[i].size() - open - 3);
      return i > 0 ? lines[i - 1] : lines[i].substr(ending.size());
    }
  if (lines.empty()) return "it said nothing";
  return lines.back().starts_with(recorder) ? "" : lines.back();
}

/// The recorder's sentence about the zeros of a dry run, which is taken out of `said`; "" if it printed none.
std::string take_hint(std::string& said) {
  const std::string recorder = "tidepool: ", begin = "\n" + recorder + "in a dry run, ";
  const std::size_t at = said.rfind(begin);
  if (at == std::string::npos) return "";
  const std::size_t end = std::min(said.find('\n', at + 1), said.size());
  std::string hint = said.substr(at + 1 + recorder.size(), end - at - 1 - recorder.size());
  said.erase(at, end - at);
  return hint;
}

std::string meta_of(const Trace& trace, const std::string& key) {
  const auto found = trace.data().meta.find(key);
  return found == trace.data().meta.end() ? "" : found->second;
}

}  // namespace

std::optional<DryRecording> record_dry(const std::vector<std::string>& command, const DeviceBudget& device, int seconds,
                                       const DryWay& way) {
  const Interruptible interruptible;
  const TemporaryFolder folder;
  const std::string path = (folder.path() / "run.tide").string();
  std::vector<std::string> arguments{"env", fmt::format("TIDEPOOL_DRY_TOTAL={}B", device.total.count())};
  arguments.insert(arguments.end(), {program_path(), "record", "--dry", "--torch", "--kernels", "-o", path});
  arguments.insert(arguments.end(), {"--device", std::string{device.name}, "--capacity", way.capacity});
  arguments.insert(arguments.end(), {"--routing", way.routing, "--", "timeout", "-k", std::to_string(kPatience)});
  arguments.push_back(std::to_string(seconds));
  arguments.insert(arguments.end(), command.begin(), command.end());
  const auto begin = std::chrono::steady_clock::now();
  ProcessResult ran = run_process(arguments, true, &Interruptible::asked());
  const bool took_all = std::chrono::steady_clock::now() - begin >= std::chrono::seconds{seconds};
  if (Interruptible::asked()) return {};
  const bool stopped = took_all && (ran.code == kStopped || ran.code == 128 + SIGKILL);
  if (!fs::exists(path) && stopped)
    throw StoppedUnrecorded{fmt::format(
        "the job was stopped after {} s, before it used the device; --seconds gives it more time", seconds)};
  if (!fs::exists(path)) refuse("{}: nothing was recorded\n{}", fmt::join(command, " "), last_lines(ran.said));
  DryRecording recording{.traces = {}, .job = {}, .stopped = stopped, .failure = "", .hint = "", .said = ""};
  if (is_job_file(path)) {
    LoadedJob job = load_job(path);
    recording.traces = std::move(job.traces);
    recording.job = std::move(job.job);
  } else {
    recording.traces.push_back(load_trace(path));
  }
  if (ran.code != 0 && !stopped) {
    recording.hint = take_hint(ran.said);
    recording.failure = failure_in(ran.said);
    recording.said = last_lines(ran.said);
  }
  if (Interruptible::asked()) return {};
  return recording;
}

std::string dry_device(const Trace& trace) { return meta_of(trace, "setting.dry_device"); }

std::string dry_rank(const Trace& trace) { return meta_of(trace, "rank"); }

std::optional<Trace> record_changed(const std::vector<std::string>& command, const std::string& device,
                                    const std::string& rank, const std::string& change) {
  const Interruptible interruptible;
  const TemporaryFolder folder;
  const std::string path = (folder.path() / "run.tide").string(), code = (folder.path() / "change.py").string();
  std::ofstream{code} << change;
  std::vector<std::string> arguments{
      "env",        "TIDEPOOL_APPLY=" + code, program_path(), "record", "--dry", "--torch", "--device", device,
      "--capacity", kEndlessMemory,           "-o",           path,     "--"};
  arguments.insert(arguments.end(), command.begin(), command.end());
  const ProcessResult ran = run_process(arguments, true, &Interruptible::asked());
  if (Interruptible::asked()) return {};
  if (ran.code != 0) refuse("{}: with the change, the job failed\n{}", fmt::join(command, " "), last_lines(ran.said));
  std::vector<Trace> traces;
  if (fs::exists(path) && is_job_file(path))
    traces = load_job(path).traces;
  else if (fs::exists(path))
    traces.push_back(load_trace(path));
  const auto found =
      std::find_if(traces.begin(), traces.end(), [&](const Trace& trace) { return dry_rank(trace) == rank; });
  if (found == traces.end())
    refuse("{}: nothing of {} was recorded\n{}", fmt::join(command, " "), rank.empty() ? "one process" : "rank " + rank,
           last_lines(ran.said));
  Trace trace = std::move(*found);
  if (!trace.data().meta.contains("applied_change"))
    refuse("{}: the change was not applied\n{}", fmt::join(command, " "), last_lines(ran.said));
  return trace;
}

}  // namespace tidepool
