// The importers of raw captures: `tidepool import` of one file, or of the folder of a run.
#include "traces/import/importer.hpp"

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "tracer/lower/lower.hpp"
#include "tracer/lower/rank_files.hpp"
#include "tracer/raw/reader.hpp"
#include "traces/base/error.hpp"
#include "traces/base/folder.hpp"
#include "traces/base/input.hpp"
#include "traces/base/refuse.hpp"

namespace tidepool {
namespace {

Trace assemble(const std::string& path, const std::vector<raw::Log>& logs, std::optional<std::size_t> device,
               LoweredOps ops) {
  try {
    return lower(logs, device, ops);
  } catch (const InputError& error) {
    const std::string message = error.what();
    throw message.starts_with(path) ? error : error.at(path);
  }
}

Trace read_file(const Input& input, std::optional<std::size_t> device, LoweredOps ops) {
  return assemble(input.path(), {raw::read_raw(input)}, device, ops);
}

/// The files of a run, in the order of their names: .raw and .jsonl, compressed or not.
std::vector<std::string> files_of(const std::string& folder) {
  std::vector<std::string> paths;
  std::error_code error;
  for (const std::string& path : files_in(folder, error)) {
    const std::string name = std::filesystem::path{path}.filename().string();
    const auto has = [&](const char* ending) { return name.find(ending) != std::string::npos; };
    if (has(".raw") || has(".jsonl")) paths.push_back(path);
  }
  return paths;
}

Trace read_folder(const std::string& folder, std::optional<std::size_t> device, LoweredOps ops) {
  const std::vector<raw::Log> logs = read_captures(folder);
  if (const std::size_t ranks = count_ranks(logs); ranks > 1)
    refuse("{}: a recording of {} ranks; expected one rank. `tidepool import` makes a job of it, with a trace of each",
           folder, ranks);
  return assemble(folder, logs, device, ops);
}

/// @param sure  whether a capture is read in this form if the user names no form
Importer importer(std::string name, std::string summary, LoweredOps ops, bool sure) {
  return {.name = std::move(name),
          .summary = std::move(summary),
          .extensions = {".raw"},
          .sniff = [sure](std::string_view head) { return sure && raw::looks_raw(head) ? 100 : 0; },
          .read = [ops](const Input& input) { return read_file(input, {}, ops); },
          .read_device = [ops](const Input& input, std::size_t device) { return read_file(input, device, ops); },
          .read_folder = [ops](const std::string& folder,
                               std::optional<std::size_t> device) { return read_folder(folder, device, ops); },
          .sniff_folder = [sure](const std::string& folder) { return !sure || files_of(folder).empty() ? 0 : 100; },
          .folder_has_devices = true};
}

const RegisterImporter kRaw{
    importer("raw",
             "raw captures, a folder of a run or one of its files: the operators of the iterations that PyTorch's hook "
             "recorded, or else kernels",
             LoweredOps::kIterations, true)};
const RegisterImporter kKernels{
    importer("raw-kernels", "raw captures: all kernels of the run", LoweredOps::kKernels, false)};
const RegisterImporter kOperators{
    importer("raw-operators", "raw captures of PyTorch on a GPU: all its operators, each with the time of its kernels",
             LoweredOps::kOperators, false)};

}  // namespace

std::vector<raw::Log> read_captures(const std::string& folder) {
  std::vector<raw::Log> logs;
  for (const std::string& path : files_of(folder)) {
    const Input input = read_input(path);
    if (raw::has_header(input.bytes())) logs.push_back(raw::read_raw(input));
  }
  if (logs.empty()) refuse("{}: no capture files; expected PID.SOURCE.raw or PID.SOURCE.jsonl in it", folder);
  return logs;
}

}  // namespace tidepool
