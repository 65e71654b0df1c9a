#include "simulator/fit/dry_recording.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdlib>
#include <filesystem>
#include <utility>

#include "simulator/launch/process.hpp"
#include "traces/import/importer.hpp"
#include "traces/refuse.hpp"

namespace tidepool {
namespace {

namespace fs = std::filesystem;

class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (fs::temp_directory_path() / "tidepool-fit-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) refuse("{}: no folder for a recording can be made here", name);
    path_ = name;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

}  // namespace

DryRecording record_dry(const std::vector<std::string>& command, const std::string& device, int seconds) {
  const TemporaryFolder folder;
  const std::string path = (folder.path() / "run.tide").string();
  std::vector<std::string> arguments{fs::read_symlink("/proc/self/exe").string(),
                                     "record",
                                     "--dry",
                                     "--torch",
                                     "--device",
                                     device,
                                     "--capacity",
                                     "4096GiB",
                                     "-o",
                                     path,
                                     "--",
                                     "timeout",
                                     std::to_string(seconds)};
  arguments.insert(arguments.end(), command.begin(), command.end());
  ProcessResult ran = run_process(arguments);
  if (!fs::exists(path)) refuse("{}: nothing was recorded\n{}", fmt::join(command, " "), ran.said);
  return {load_trace(path), ran.code == 0 ? "" : std::move(ran.said)};
}

}  // namespace tidepool
