// Descriptors that do not take the place of the job's streams.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

namespace tidepool::raw {

/// The descriptor, or instead of 0, 1 or 2 a copy with a larger number: if the job has closed a standard stream, what
/// it writes there must not get into a file of the recorder. -1, with errno, if `descriptor` is -1 or there is
/// no room for a copy.
inline int beyond_streams(int descriptor) noexcept {
  if (descriptor < 0 || descriptor > STDERR_FILENO) return descriptor;
  const int copy = ::fcntl(descriptor, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  const int error = errno;
  ::close(descriptor);
  errno = error;
  return copy;
}

}  // namespace tidepool::raw
