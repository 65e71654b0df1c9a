#include "simulator/studies/ranks/collective_table.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <vector>

#include "simulator/options.hpp"
#include "traces/base/lines.hpp"
#include "traces/base/refuse.hpp"

namespace tidepool {
namespace {

constexpr std::int64_t kMost = std::int64_t{1} << 50;

/// Indices of the columns that are read.
struct Columns {
  std::size_t gpu, devices, size, time;
};

Columns find_columns(Lines& lines, const std::string& file) {
  if (!lines.next()) refuse("{}: is empty; expected a table with the columns gpu, n_gpus, size_bytes", file);
  const std::vector<std::string> names = split_list(lines.text());
  const auto find = [&](const char* name) { return std::find(names.begin(), names.end(), name) - names.begin(); };
  const auto place = [&](const char* name) {
    const auto found = static_cast<std::size_t>(find(name));
    if (found == names.size()) lines.refuse("no column '{}'; the file has {}", name, fmt::join(names, ", "));
    return found;
  };
  const char* const in_place = "time_in_place_ns";
  const bool has = static_cast<std::size_t>(find(in_place)) < names.size();
  return {place("gpu"), place("n_gpus"), place("size_bytes"), place(has ? in_place : "time_out_of_place_ns")};
}

const std::string& cell(const Lines& lines, const std::vector<std::string>& cells, std::size_t column) {
  if (column >= cells.size()) lines.refuse("{} columns; expected at least {}", cells.size(), column + 1);
  return cells[column];
}

std::int64_t whole(const Lines& lines, const std::string& text, const char* name, std::int64_t least) {
  const std::optional<std::int64_t> number = parse_whole(text);
  if (!number || *number < least || *number > kMost)
    lines.refuse("{} is '{}'; expected a whole number from {} to 2^50", name, excerpt(text), least);
  return *number;
}

Nanos nanos(const Lines& lines, const std::string& text) {
  char* end = nullptr;
  const double time = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != '\0' || !(time > 0) || time > static_cast<double>(kMost))
    lines.refuse("the time is '{}'; expected a number of ns above 0 and at most 2^50", excerpt(text));
  return Nanos{std::max(std::llround(time), 1LL)};
}

}  // namespace

CollectiveTable::CollectiveTable(const Input& input, const std::string& gpu) {
  Lines lines{input.path(), input.bytes()};
  const Columns columns = find_columns(lines, input.path());
  using Rows = std::map<std::size_t, std::map<Bytes, Nanos>>;
  std::map<std::string, Rows> rows;  // by device
  while (lines.next()) {
    const std::vector<std::string> cells = split_list(lines.text());
    const std::string& device = cell(lines, cells, columns.gpu);
    const std::int64_t devices = whole(lines, cell(lines, cells, columns.devices), "n_gpus", 2);
    const Bytes size{whole(lines, cell(lines, cells, columns.size), "size_bytes", 1)};
    const Nanos time = nanos(lines, cell(lines, cells, columns.time));
    if (!rows[device][static_cast<std::size_t>(devices)].emplace(size, time).second)
      lines.refuse("{} bytes on {} devices a second time; expected each size once", size.count(), devices);
  }
  std::vector<std::string> known;
  for (const auto& [device, of_device] : rows) known.push_back(device);
  if (known.empty()) refuse("{}: no rows; expected times of collectives", input.path());
  if (!gpu.empty() && !rows.contains(gpu))
    refuse("{}: no device '{}'; the file has {}", input.path(), gpu, fmt::join(known, ", "));
  if (gpu.empty() && known.size() > 1)
    refuse("{}: has {}; expected one of them to be named, as in {}:{}", input.path(), fmt::join(known, ", "),
           input.path(), known.front());
  for (const auto& [devices, times] : rows[gpu.empty() ? known.front() : gpu]) {
    const auto& [last_size, last_time] = *times.rbegin();
    const double rate = static_cast<double>(last_size.count()) * 1e9 / static_cast<double>(last_time.count());
    Link& link = by_devices_[devices];
    link.rate = BytesPerSecond{std::max<std::int64_t>(std::llround(rate), 1)};
    link.latency = times.begin()->second;
    for (const auto& [size, time] : times) link.times.push_back({size, time});
  }
}

std::optional<Nanos> CollectiveTable::all_reduce(std::size_t devices, Bytes size) const {
  const auto found = by_devices_.find(devices);
  if (found == by_devices_.end()) return {};
  return found->second.time(size);
}

CollectiveTable read_collective_table(const std::string& name) {
  std::error_code error;
  const std::size_t colon = name.rfind(':');
  if (colon == std::string::npos || std::filesystem::exists(name, error)) return CollectiveTable{read_input(name), ""};
  return CollectiveTable{read_input(name.substr(0, colon)), name.substr(colon + 1)};
}

}  // namespace tidepool
