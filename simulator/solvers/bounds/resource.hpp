// Resources that cause lost time, as bounds prove.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>

namespace tidepool {

/// The resource that limits every plan of a query.
enum class Resource : std::uint8_t {
  kCompute,    ///< no time is lost: the step takes as long as without any limit
  kRecompute,  ///< ops that run again
  kD2h,        ///< copies from the device, to the host or to storage
  kH2d,        ///< copies back to the device
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

/// Time that every plan loses, in ns, by resource.
struct LostTime {
  double d2h = 0, h2d = 0, recompute = 0;

  double total() const { return d2h + h2d + recompute; }
  /// The resource with the largest share. Of equal shares copies come first, and copies out before copies in.
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
