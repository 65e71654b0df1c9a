#include "traces/base/output.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "traces/base/refuse.hpp"

namespace tidepool {

void require_writable(const std::string& path) {
  namespace fs = std::filesystem;
  if (path.empty()) return;
  if (path == "-") refuse("'-' is no file, nor the standard output; expected a name (./- for a file of this name)");
  std::error_code unknown;
  const auto type = fs::symlink_status(path, unknown).type();
  if (fs::is_directory(path, unknown)) refuse("{}: is a directory; expected a file", path);
  // A file is replaced by a new one. A link, a pipe or a device is written to.
  const bool is_new = type == fs::file_type::regular || type == fs::file_type::not_found;
  if (!is_new && !fs::exists(path, unknown)) return;  // a link to a file that does not exist yet
  const fs::path folder = fs::path{path}.parent_path();
  const std::string written = !is_new ? path : folder.empty() ? "." : folder.string();
  if (::faccessat(AT_FDCWD, written.c_str(), is_new ? W_OK | X_OK : W_OK, AT_EACCESS) != 0)
    refuse("{}: cannot be written: {}", path, std::strerror(errno));
  if (is_new && !fs::is_directory(written, unknown)) refuse("{}: cannot be written: {}", path, std::strerror(ENOTDIR));
}

}  // namespace tidepool
