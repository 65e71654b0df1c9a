#include "traces/import/importer.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <new>
#include <utility>

#include "traces/base/error.hpp"
#include "traces/base/nearest.hpp"
#include "traces/base/refuse.hpp"
#include "traces/content.hpp"
#include "traces/import/json_walk.hpp"
#include "traces/one_device.hpp"

namespace tidepool {
namespace {

std::vector<Importer>& registry() {
  static std::vector<Importer> importers;
  return importers;
}

std::vector<std::string> known_names() {
  std::vector<std::string> names;
  for (const Importer& importer : all_importers()) names.push_back(importer.name);
  return names;
}

Trace load_folder(const std::string& path, const std::string& format, std::optional<std::size_t> device) {
  const Importer& importer = find_folder_importer(path, format);
  if (device && !importer.folder_has_devices)
    throw InputError{fmt::format("{}: --device {}: the form {} has no devices", path, *device, importer.name)};
  return importer.read_folder(path, device);
}

/// What a file is that is no trace, and what to do; empty: not known.
std::string_view other_file(std::string_view head) {
  if (head.starts_with("version https://git-lfs.github.com/spec/"))
    return "is a Git LFS pointer, which stands for the file: `git lfs pull` brings it";
  if (head.starts_with('[') && head.find("----- RMM LOG BEGIN") != std::string_view::npos)
    return "RMM's debug log has no allocations; set RMM_LOG_FILE to a path, where RMM logs them";
  if (head.starts_with("heap profile: "))
    return "is a heap profile as text; `pprof -proto PROGRAM FILE > FILE.pb` makes one that can be read";
  return {};
}

InputError too_large(const std::string& path) {
  return InputError{fmt::format("{}: takes more memory than there is; expected a smaller trace", path)};
}

/// Whether `path`, less a suffix that says how it is compressed, ends in one of the form's extensions.
bool has_extension(const Importer& importer, std::string_view path) {
  for (const std::string_view packed : {".gz", ".xz", ".zst"})
    if (path.ends_with(packed)) path.remove_suffix(packed.size());
  return std::any_of(importer.extensions.begin(), importer.extensions.end(),
                     [&](const std::string& extension) { return path.ends_with(extension); });
}

/// The importer with the greatest likelihood for the first bytes, or for a text in their place; null: none.
const Importer* most_likely(std::string_view head, std::string_view path) {
  const Importer* best = nullptr;
  std::pair<int, bool> best_rank{0, true};
  for (const Importer& importer : all_importers()) {
    const std::pair rank{importer.sniff(head), has_extension(importer, path)};
    if (rank > best_rank) best = &importer, best_rank = rank;
  }
  return best;
}

/// Whether the first bytes are of a JSON object that is longer than they are, so that its keys may be further behind.
bool is_longer_object(std::string_view head, const Input& input) {
  return head.starts_with('{') && input.bytes().size() >= kSniffBytes;
}

/// The keys of a JSON object without their values, as in {"metadata":0,"traceEvents":0}; up to where it is damaged.
std::string keys_alone(const Input& input) {
  std::string keys = "{";
  try {
    for (JsonWalk walk{input}; walk.next_member(); walk.value())
      keys += fmt::format("{}\"{}\":0", keys.size() == 1 ? "" : ",", walk.key());
  } catch (const InputError&) {
  }
  return keys + "}";
}

/// The kind of content of an input that no importer takes.
std::string what_it_is(const Input& input) {
  const std::string_view head = input.bytes().substr(0, kSniffBytes);
  if (head.empty()) return "is empty; expected a trace";
  std::string commas{head};
  std::replace(commas.begin(), commas.end(), ';', ',');
  if (commas != head && most_likely(commas, input.path()) != nullptr)
    return "has semicolons between its columns; expected commas";
  const std::string_view what = not_text(head);
  if (what == "is text in UTF-16") return "is text in UTF-16; expected UTF-8";
  return fmt::format("{} in no form that tidepool reads", what.empty() ? "text" : "binary data");
}

}  // namespace

RegisterImporter::RegisterImporter(Importer importer) {
  std::vector<Importer>& all = registry();
  const auto later = [](const Importer& a, const Importer& b) { return a.name < b.name; };
  all.insert(std::upper_bound(all.begin(), all.end(), importer, later), std::move(importer));
}

const std::vector<Importer>& all_importers() { return registry(); }

const Importer& find_importer(const Input& input, const std::string& format) {
  if (const std::string_view other = other_file(input.bytes().substr(0, kSniffBytes)); !other.empty())
    throw InputError{fmt::format("{}: {}", input.path(), other)};
  if (format != "auto") {
    for (const Importer& importer : all_importers())
      if (importer.name == format) return importer;
    throw InputError{unknown_name("format", format, known_names())};
  }
  std::string_view head = input.bytes().substr(0, kSniffBytes);
  const Importer* best = most_likely(head, input.path());
  head.remove_prefix(std::min(head.find_first_not_of(" \t\r\n"), head.size()));  // readers of texts skip blank lines
  if (!best) best = most_likely(head, input.path());
  if (!best && is_longer_object(head, input)) best = most_likely(keys_alone(input), input.path());
  if (!best && begins_job_file(head))
    throw InputError{
        fmt::format("{}: is a job file, which joins the traces of several ranks; expected one of these", input.path())};
  if (!best)
    throw InputError{fmt::format("{}: {}; known: {}", input.path(), what_it_is(input), fmt::join(known_names(), ", "))};
  return *best;
}

const Importer& find_folder_importer(const std::string& folder, const std::string& format) {
  const Importer* best = nullptr;
  int best_rank = 0;
  for (const Importer& importer : all_importers()) {
    if (!importer.read_folder || (format != "auto" && importer.name != format)) continue;
    const int rank = importer.sniff_folder ? importer.sniff_folder(folder) : 1;
    if (rank > best_rank || format != "auto") best = &importer, best_rank = rank;
  }
  if (best) return *best;
  std::vector<std::string> takers;
  for (const Importer& importer : all_importers())
    if (importer.read_folder) takers.push_back(importer.name);
  throw InputError{
      fmt::format("{}: is a folder; expected one file, or for {} a folder", folder, fmt::join(takers, " or "))};
}

Input read_trace_input(const std::string& path, const std::string& format) {
  return read_input(path, [&](const Input& head) {
    if (!is_longer_object(head.bytes(), head)) static_cast<void>(find_importer(head, format));
  });
}

Trace load_trace(const std::string& path, const std::string& format, std::optional<std::size_t> device,
                 const std::string& with) try {
  if (std::error_code error; std::filesystem::is_directory(path, error)) {
    if (!with.empty()) throw InputError{fmt::format("{}: --with {}: a folder takes no second file", path, with)};
    return load_folder(path, format, device);
  }
  const Input input = read_trace_input(path, format);
  const Importer& importer = find_importer(input, format);
  if (!with.empty()) {
    if (!importer.read_with)
      throw InputError{fmt::format("{}: --with {}: the form {} takes no second file", path, with, importer.name)};
    return importer.read_with(input, read_input(with), device);
  }
  if (!device) return importer.read(input);
  if (!importer.read_device)
    throw InputError{fmt::format("{}: --device {}: the form {} has no devices", path, *device, importer.name)};
  return importer.read_device(input, *device);
} catch (const std::bad_alloc&) {
  throw too_large(path);
}

Trace load_trace(const Input& input) try {
  return find_importer(input, "auto").read(input);
} catch (const std::bad_alloc&) {
  throw too_large(input.path());
}

Trace load_for_runs(const std::string& path) {
  Trace trace = load_trace(path);
  naming(path, [&] { require_one_device(trace, "a run has one memory"); });
  return trace;
}

}  // namespace tidepool
