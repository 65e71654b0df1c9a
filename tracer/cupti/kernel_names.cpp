#include "tracer/cupti/kernel_names.hpp"

#include <cxxabi.h>

#include <cstdlib>
#include <memory>
#include <optional>
#include <string>

namespace tidepool::cupti {
namespace {

constexpr std::size_t kLongestName = 1U << 16;  // PyTorch's longest are a few thousand bytes

bool opens(char c) { return c == '(' || c == '<' || c == '[' || c == '{'; }
bool closes(char c) { return c == ')' || c == '>' || c == ']' || c == '}'; }

/// Whether text[at] is the '>' of "->", in an operator's name or before a return type. Such a '>' closes no bracket.
bool is_arrow(std::string_view text, std::size_t at) { return text[at] == '>' && at > 0 && text[at - 1] == '-'; }

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

/// The text of the parameter list: what is between the last ')' of the name and the bracket that it closes. None if the
/// name has no ')' or nothing opens it.
std::optional<std::string_view> parameter_list(std::string_view name) {
  const std::size_t last = name.rfind(')');
  if (last == std::string_view::npos) return std::nullopt;
  std::size_t depth = 0;
  for (std::size_t i = last + 1; i-- > 0;) {
    if (is_arrow(name, i)) continue;
    if (closes(name[i])) ++depth;
    if (opens(name[i]) && --depth == 0) return name.substr(i + 1, last - i - 1);
  }
  return std::nullopt;
}

ParameterType type_of(std::string_view text) {
  text = trimmed(text);
  if (text.empty()) return ParameterType::kUnknown;
  if (text.ends_with("const*")) return ParameterType::kPointerToConst;
  return text.back() == '*' ? ParameterType::kPointer : ParameterType::kValue;
}

}  // namespace

std::vector<ParameterType> declared_parameter_types(std::string_view demangled) {
  const std::optional<std::string_view> list = parameter_list(demangled);
  if (!list || trimmed(*list).empty()) return {};
  std::vector<ParameterType> types;
  std::size_t depth = 0, begin = 0;
  for (std::size_t i = 0; i < list->size(); ++i) {
    const char c = (*list)[i];
    if (opens(c)) ++depth;
    if (closes(c) && !is_arrow(*list, i)) {
      if (depth == 0) return {};  // a closing bracket without an opening one belongs to an operator's name
      --depth;
    }
    if (c == ',' && depth == 0) {
      types.push_back(type_of(list->substr(begin, i - begin)));
      begin = i + 1;
    }
  }
  if (depth != 0) return {};
  types.push_back(type_of(list->substr(begin)));
  return types;
}

std::vector<ParameterType> parameter_types(std::string_view mangled) {
  if (!mangled.starts_with("_Z") || mangled.size() > kLongestName) return {};
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> demangled{
      abi::__cxa_demangle(std::string{mangled}.c_str(), nullptr, nullptr, &status), &std::free};
  return status == 0 && demangled ? declared_parameter_types(demangled.get()) : std::vector<ParameterType>{};
}

}  // namespace tidepool::cupti
