#include "traces/import/user_code.hpp"

#include <algorithm>
#include <array>
#include <string>

namespace tidepool {
namespace {

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
