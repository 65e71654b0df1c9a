#include "traces/import/recorded_names.hpp"

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

/// Folders with code that the user did not write. PyTorch's compiler writes its code to the last one.
constexpr std::array<std::string_view, 4> kForeign{"/site-packages/", "/dist-packages/", "/pytorch/torch/",
                                                   "/torchinductor_"};

/// Whether a file lies in the library of Python, as in "/usr/lib64/python3.9/threading.py".
bool in_library(std::string_view path) {
  for (const std::string_view folder : {"/lib/python", "/lib64/python"})
    for (std::size_t at = path.find(folder); at != std::string_view::npos; at = path.find(folder, at + 1))
      if (const std::size_t next = at + folder.size(); next < path.size() && path[next] >= '0' && path[next] <= '9')
        return true;
  return false;
}

/// Whether a file lies in the folder "Lib" of Python on Windows, as in "C:/Python311/Lib/threading.py".
bool in_windows_library(std::string_view path) {
  const bool drive = path.size() > 2 && path[1] == ':' && path[2] == '/';
  return drive && path.find("/Lib/") != std::string_view::npos;
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

bool is_user_code(std::string_view file) {
  if (file == "<stdin>" || file.starts_with("<ipython-input")) return true;
  if (!file.ends_with(".py")) return false;
  std::string path{file};
  std::replace(path.begin(), path.end(), '\\', '/');
  return !in_library(path) && !in_windows_library(path) &&
         std::none_of(kForeign.begin(), kForeign.end(),
                      [&](std::string_view folder) { return path.find(folder) != std::string::npos; });
}

}  // namespace tidepool
