#include "traces/import/range_names.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

namespace tidepool {
namespace {

bool digit(char c) { return c >= '0' && c <= '9'; }
bool letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

std::string lower_case(std::string_view text) {
  std::string lower{text};
  for (char& c : lower)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return lower;
}

}  // namespace

std::optional<Phase> phase_named(std::string_view name) {
  constexpr std::array<std::pair<std::string_view, Phase>, 5> kWords{{{"forward", Phase::kForward},
                                                                      {"fwd", Phase::kForward},
                                                                      {"backward", Phase::kBackward},
                                                                      {"bwd", Phase::kBackward},
                                                                      {"optim", Phase::kOptimizer}}};
  const std::string lower = lower_case(name);
  std::optional<Phase> found;
  for (const auto& [word, phase] : kWords) {
    if (lower.find(word) == std::string::npos) continue;
    if (found && *found != phase) return {};
    found = phase;
  }
  return found;
}

bool names_iteration(std::string_view name) {
  const std::string lower = lower_case(name);
  for (const std::string_view word : {"step", "iteration", "iter", "batch"})
    for (std::size_t at = lower.find(word); at != std::string::npos; at = lower.find(word, at + 1)) {
      const std::size_t number = lower.find_first_not_of(" _-#:=", at + word.size());
      if (number != std::string::npos && digit(lower[number])) return true;
    }
  return false;
}

bool names_module(std::string_view name) {
  const auto part = [](char c) { return letter(c) || digit(c) || c == '.'; };
  return !name.empty() && letter(name.front()) && name.back() != '.' && name.find('.') != std::string_view::npos &&
         name.find("..") == std::string_view::npos && std::all_of(name.begin(), name.end(), part);
}

}  // namespace tidepool
