// tidepool import of raw captures: one file, or the folder of a run.
#include "traces/import/importer.hpp"

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "tracer/lower/lower.hpp"
#include "tracer/raw/reader.hpp"
#include "traces/error.hpp"
#include "traces/refuse.hpp"

namespace tidepool {
namespace {

Trace assemble(const std::string& path, const std::vector<raw::Log>& logs, std::optional<std::size_t> device) {
  try {
    return lower(logs, device);
  } catch (const InputError& error) {
    const std::string message = error.what();
    throw message.starts_with(path) ? error : error.at(path);
  }
}

Trace read_file(const Input& input) { return assemble(input.path(), {raw::read_raw(input)}, {}); }

Trace read_file_device(const Input& input, std::size_t device) {
  return assemble(input.path(), {raw::read_raw(input)}, device);
}

/// The files of a run, in the order of their names: .raw and .jsonl, compressed or not.
std::vector<std::string> files_of(const std::string& folder) {
  std::vector<std::string> paths;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator{folder, error}) {
    const std::string name = entry.path().filename().string();
    const auto has = [&](const char* ending) { return name.find(ending) != std::string::npos; };
    if (entry.is_regular_file() && (has(".raw") || has(".jsonl"))) paths.push_back(entry.path().string());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

Trace read_folder(const std::string& folder, std::optional<std::size_t> device) {
  std::vector<raw::Log> logs;
  for (const std::string& path : files_of(folder)) {
    const Input input = read_input(path);
    if (raw::has_header(input.bytes())) logs.push_back(raw::read_raw(input));
  }
  if (logs.empty()) refuse("{}: no capture files; expected PID.SOURCE.raw or PID.SOURCE.jsonl in it", folder);
  return assemble(folder, logs, device);
}

int sniff(std::string_view head) { return raw::looks_raw(head) ? 100 : 0; }

const RegisterImporter kRaw{
    {.name = "raw",
     .summary = "raw captures: a folder of a run, or one of its files",
     .extensions = {".raw"},
     .sniff = sniff,
     .read = read_file,
     .read_device = read_file_device,
     .read_folder = read_folder,
     .sniff_folder = [](const std::string& folder) { return files_of(folder).empty() ? 0 : 100; },
     .folder_has_devices = true}};

}  // namespace
}  // namespace tidepool
