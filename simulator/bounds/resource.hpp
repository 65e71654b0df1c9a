// Resource to which a bound proves that time is lost.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>

namespace tidepool {

/// What limits every plan that a bound is about.
enum class Resource : std::uint8_t {
  kCompute,    ///< nothing is lost: the step takes as long without any limit
  kRecompute,  ///< ops that run again
  kD2h,        ///< copies from the device, to the host or to storage
  kH2d,        ///< copies back
  kMemory      ///< no plan exists
};

constexpr std::string_view to_text(Resource resource) {
  switch (resource) {
    case Resource::kCompute:
      return "compute";
    case Resource::kRecompute:
      return "recompute";
    case Resource::kD2h:
      return "d2h";
    case Resource::kH2d:
      return "h2d";
    case Resource::kMemory:
      break;
  }
  return "memory";
}

/// Time that every plan loses, in ns, by what it is lost to.
struct LostTime {
  double d2h = 0, h2d = 0, recompute = 0;

  double total() const { return d2h + h2d + recompute; }
  /// What most of the time is lost to, if any is; of equal shares copies, those out first.
  Resource mostly() const {
    const double most = std::max({d2h, h2d, recompute});
    return d2h == most ? Resource::kD2h : h2d == most ? Resource::kH2d : Resource::kRecompute;
  }
  LostTime& operator+=(const LostTime& other) {
    d2h += other.d2h, h2d += other.h2d, recompute += other.recompute;
    return *this;
  }
};

}  // namespace tidepool
