#include "traces/base/output.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <random>
#include <stdexcept>
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

Unbroken::Unbroken() {
  sigset_t waiting;
  sigemptyset(&waiting);
  sigaddset(&waiting, SIGINT);
  sigaddset(&waiting, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &waiting, &before_);
}

Unbroken::~Unbroken() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

std::FILE* create_beside(const std::string& path, std::string& name) {
  std::random_device random;
  int file = -1;
  do {
    name = fmt::format("{}.{:08x}.tmp", path, random());
    file = ::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  } while (file < 0 && errno == EEXIST);
  if (file < 0) return nullptr;
  if (std::FILE* const opened = ::fdopen(file, "wb")) return opened;
  const int reason = errno;
  ::close(file);
  ::unlink(name.c_str());
  errno = reason;
  return nullptr;
}

std::string write_beside(const std::string& path, std::string_view bytes) {
  std::string name;
  std::FILE* const file = create_beside(path, name);
  if (file == nullptr) refuse("{}: cannot be written: {}", path, std::strerror(errno));
  write_and_close(file, bytes, path, name);
  return name;
}

void write_and_close(std::FILE* file, std::string_view bytes, const std::string& path, const std::string& unfinished) {
  const bool complete = std::fwrite(bytes.data(), 1, bytes.size(), file) == bytes.size();
  const bool closed = std::fclose(file) == 0;
  if (!complete || !closed) fail_unfinished(path, unfinished);
}

void fail_unfinished(const std::string& path, const std::string& unfinished) {
  const int why = errno;
  if (!unfinished.empty()) std::remove(unfinished.c_str());
  throw std::runtime_error{fmt::format("{}: cannot be written: {}", path, std::strerror(why))};
}

}  // namespace tidepool
