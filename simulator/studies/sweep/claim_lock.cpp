#include "simulator/studies/sweep/claim_lock.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <random>
#include <stdexcept>

namespace tidepool {
namespace {

std::int64_t random_byte() {
  std::random_device random;
  return static_cast<std::int64_t>((std::uint64_t{random()} << 32 | random()) >> 2);
}

/// Calls fcntl() on a range of bytes: `command` takes a lock, or finds a lock that conflicts with it. The lock belongs
/// to the open file, not to the process. @param bytes  length of the range; 0: all bytes from `first` on
int lock(int file, int command, std::int64_t first, std::int64_t bytes, struct flock& range) {
  range = {};
  range.l_type = F_WRLCK;
  range.l_whence = SEEK_SET;
  range.l_start = first;
  range.l_len = bytes;
  return fcntl(file, command, &range);
}

std::string locks_of(const std::string& database) { return std::filesystem::canonical(database).string() + "-workers"; }

}  // namespace

ClaimLock::ClaimLock(const std::string& database) : path_{locks_of(database)}, holder_{random_byte()} {
  struct flock range;
  struct stat status = {};
  while (status.st_nlink == 0) {  // the file was removed after it was opened and before it was locked
    if (file_ >= 0) ::close(file_);
    file_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (file_ < 0 || lock(file_, F_OFD_SETLKW, holder_, 1, range) != 0 || fstat(file_, &status) != 0) {
      const int why = errno;
      if (file_ >= 0) ::close(file_);
      throw std::runtime_error{fmt::format("{}: cannot be locked: {}", path_, std::strerror(why))};
    }
  }
}

ClaimLock::~ClaimLock() {
  struct flock range;
  if (lock(file_, F_OFD_SETLK, 0, 0, range) == 0) ::unlink(path_.c_str());  // nobody else holds a byte of it
  ::close(file_);
}

bool ClaimLock::file_exists(const std::string& database) { return std::filesystem::exists(locks_of(database)); }

bool ClaimLock::is_held(std::int64_t holder) const {
  struct flock range;
  return lock(file_, F_OFD_GETLK, holder, 1, range) != 0 || range.l_type != F_UNLCK;
}

}  // namespace tidepool
