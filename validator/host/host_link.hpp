// The link of a machine without a device: copies between two parts of its own memory, too large for its caches. The
// clock that measures runs on the host.
#pragma once

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>

#include "traces/base/quantity.hpp"

namespace tidepool {

/// One direction. Each copy starts at the address where the last copy ended, so that caches hold little of its memory.
class HostLink {
 public:
  HostLink() : from_{new char[kWindow]}, to_{new char[kWindow]} {
    std::memset(from_.get(), 1, kWindow);
    std::memset(to_.get(), 2, kWindow);
  }

  void copy(Bytes size) {
    for (auto left = static_cast<std::size_t>(size.count()); left > 0;) {
      const std::size_t piece = std::min(left, kWindow - at_);
      std::memcpy(to_.get() + at_, from_.get() + at_, piece);
      at_ = (at_ + piece) % kWindow;
      left -= piece;
    }
  }

 private:
  static constexpr std::size_t kWindow = std::size_t{1} << 26;
  std::unique_ptr<char[]> from_, to_;
  std::size_t at_ = 0;
};

/// Both directions. They are independent, like the copy engines of a device, if this machine has a core for each.
struct HostLinks {
  HostLink out, in;

  /// Pins the calling thread, which is about to copy, to the first core that it may use (copies out) or to the last one
  /// (copies in). Otherwise, schedulers may put both threads on one core. In Linux's usual numbering of cores, the
  /// first and the last of all cores are on different physical cores if there are several. If the system refuses, the
  /// thread stays where it is.
  static void take_core(bool is_out) {
    cpu_set_t allowed, own;
    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;
    int first = -1, last = -1;
    for (int core = 0; core < CPU_SETSIZE; ++core)
      if (CPU_ISSET(core, &allowed)) first = first < 0 ? core : first, last = core;
    CPU_ZERO(&own);
    CPU_SET(is_out ? first : last, &own);
    sched_setaffinity(0, sizeof own, &own);
  }
};

using Clock = std::chrono::steady_clock;

inline Nanos since(Clock::time_point start) {
  return Nanos{std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - start).count()};
}

}  // namespace tidepool
