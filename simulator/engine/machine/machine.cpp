#include "simulator/machine.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "simulator/engine/machine/machine_file.hpp"
#include "simulator/options.hpp"
#include "traces/base/error.hpp"
#include "traces/summary.hpp"

namespace tidepool {

Nanos Link::time(Bytes size) const {
  if (times.empty()) return latency + transfer_time(size, rate);
  const auto next =
      std::lower_bound(times.begin(), times.end(), size, [](const TimedSize& at, Bytes s) { return at.size < s; });
  if (next == times.end()) return times.back().time + transfer_time(size - times.back().size, rate);
  const TimedSize from = next == times.begin() ? TimedSize{Bytes{}, latency} : *std::prev(next);
  const Int128 part = static_cast<Int128>((next->time - from.time).count()) * (size - from.size).count();
  const std::int64_t whole = (next->size - from.size).count();
  return from.time + Nanos{static_cast<std::int64_t>((part > 0 ? part + whole - 1 : part) / whole)};  // rounded up
}

Cut Machine::cut(Bytes copy) const {
  constexpr std::int64_t kMost = 1024;
  if (chunk == Bytes{} || copy <= chunk) return {1, copy};
  const Bytes size = std::max(chunk, Bytes{(copy.count() + kMost - 1) / kMost});
  return {(copy + size - Bytes{1}) / size, size};
}

const std::vector<Machine>& known_machines() {
  static const std::vector<Machine> kMachines = [] {
    std::vector<Machine> machines;
    for (const std::string_view text : known_machine_files())
      machines.push_back(parse_machine(text, "built-in machine"));
    return machines;
  }();
  return kMachines;
}

Machine issuing(Machine machine, const Trace& trace) {
  machine.launch = std::max(machine.launch, issue_time(trace));
  return machine;
}

Machine find_machine(const std::string& name_or_path) {
  std::vector<std::string> known;
  for (const Machine& machine : known_machines()) {
    if (machine.name == name_or_path) return machine;
    known.push_back(machine.name);
  }
  std::error_code error;
  if (std::filesystem::is_directory(name_or_path, error))
    throw InputError{fmt::format("{}: is a directory; expected a machine file, or the name of a machine: {}",
                                 name_or_path, fmt::join(known, ", "))};
  if (!std::filesystem::is_regular_file(name_or_path, error))
    throw InputError{unknown_name("machine", name_or_path, known) + ", or a JSON file"};
  constexpr std::uintmax_t kLargest = 1 << 20;
  if (std::filesystem::file_size(name_or_path) > kLargest)
    throw InputError{fmt::format("{}: larger than 1 MiB; expected a machine file", name_or_path)};
  std::ifstream file{name_or_path, std::ios::binary};
  if (!file) throw InputError{fmt::format("{}: cannot be read", name_or_path)};
  return parse_machine(std::string{std::istreambuf_iterator<char>{file}, {}}, name_or_path);
}

}  // namespace tidepool
