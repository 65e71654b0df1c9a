// A file that a recorder writes inside the job.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <utility>

namespace tidepool::raw {

/// A file that is open only while it is written. So a job that closes all descriptors does not close the recorder's,
/// and no file of the job gets a number that the recorder writes to.
class OwnFile {
 public:
  /// Creates the file, which must not exist yet, readable by the user alone. @return 0 or errno
  int create(std::string path) {
    path_ = std::move(path);
    return open(O_CREAT | O_EXCL, [this](int file) {
      struct stat status = {};
      if (::fchmod(file, S_IRUSR | S_IWUSR) != 0 || ::fstat(file, &status) != 0) return errno;  // whatever the umask is
      device_ = status.st_dev;
      inode_ = status.st_ino;
      return 0;
    });
  }

  /// Calls change(descriptor), which returns 0 or errno, while the file is open. Writes go to its end.
  /// @return 0 or errno; ENOENT if another file has taken its place
  template <class Change>
  int change(const Change& change) const noexcept {
    return open(O_APPEND, [&](int file) { return is_own(file) ? change(file) : ENOENT; });
  }

  /// Writes over bytes that the file has, if it is still there.
  void overwrite(const void* bytes, std::size_t size, off_t offset) const noexcept {
    open(0, [&](int file) { return is_own(file) && ::pwrite(file, bytes, size, offset) < 0 ? errno : 0; });
  }

 private:
  bool is_own(int file) const noexcept {
    struct stat status = {};
    return ::fstat(file, &status) == 0 && status.st_dev == device_ && status.st_ino == inode_;
  }

  template <class Use>
  int open(int flags, const Use& use) const noexcept {
    int file = ::open(path_.c_str(), O_WRONLY | O_CLOEXEC | flags, S_IRUSR | S_IWUSR);
    if (file >= 0 && file <= STDERR_FILENO) {  // the job has closed a standard stream: what it writes must not get here
      const int copy = ::fcntl(file, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
      const int error = errno;
      ::close(file);
      errno = error;
      file = copy;
    }
    if (file < 0) return errno;
    const int error = use(file);
    ::close(file);
    return error;
  }

  std::string path_;
  dev_t device_ = 0;
  ino_t inode_ = 0;
};

/// Writes all bytes to a descriptor. @return 0 or errno
inline int write_all(int file, const void* bytes, std::size_t size) noexcept {
  const char* at = static_cast<const char*>(bytes);
  while (size > 0) {
    const ssize_t done = ::write(file, at, size);
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) return errno;
    at += done;
    size -= static_cast<std::size_t>(done);
  }
  return 0;
}

}  // namespace tidepool::raw
