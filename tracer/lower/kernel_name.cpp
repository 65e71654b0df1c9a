#include "tracer/lower/kernel_name.hpp"

#include <charconv>

namespace tidepool {

std::string kernel_name(std::string_view mangled) {
  if (!mangled.starts_with("_Z")) return std::string{mangled};
  std::string_view rest = mangled.substr(2);
  const bool nested = rest.starts_with("N");
  if (nested) rest.remove_prefix(1);
  if (nested && rest.starts_with("St")) rest.remove_prefix(2);  // std
  std::string name = nested && mangled.substr(3).starts_with("St") ? "std" : "";
  const auto has_part = [&] {
    if (rest.starts_with("L")) rest.remove_prefix(1);  // the part is local to one file
    return !rest.empty() && rest.front() >= '0' && rest.front() <= '9';
  };
  while (has_part()) {
    std::size_t length = 0;
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), length);
    rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
    if (error != std::errc{} || length > rest.size()) return std::string{mangled};
    const std::string_view part = rest.substr(0, length);
    if (!name.empty()) name += "::";
    name += part.starts_with("_GLOBAL__N_") ? "(anonymous namespace)" : part;
    rest.remove_prefix(length);
    if (!nested) break;
  }
  return name.empty() ? std::string{mangled} : name;
}

}  // namespace tidepool
