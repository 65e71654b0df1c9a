// The link of a machine that has no device: copies between two pieces of its own memory, too large for its caches.
#pragma once

#include <algorithm>
#include <cstring>
#include <memory>

#include "traces/quantity.hpp"

namespace tidepool {

/// One direction. Each copy goes on where the last one ended, so that little of what it touches is in a cache.
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

struct HostLinks {
  HostLink out, in;
};

}  // namespace tidepool
