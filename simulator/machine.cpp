#include "simulator/machine.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "simulator/machine_file.hpp"
#include "simulator/options.hpp"
#include "traces/error.hpp"

namespace tidepool {

Machine find_machine(const std::string& name_or_path) {
  std::vector<std::string> known;
  for (const Machine& machine : known_machines()) {
    if (machine.name == name_or_path) return machine;
    known.push_back(machine.name);
  }
  std::error_code error;
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
