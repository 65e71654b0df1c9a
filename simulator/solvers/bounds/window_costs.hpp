// The time that absent bytes cost around one instant: copies out before it, copies in and reruns after it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "simulator/solvers/bounds/resource.hpp"

namespace tidepool {

/// A time of max(0, bytes / rate - slack) ns, lost between the instant and the position `reach`.
struct Ramp {
  double rate = 1, slack = std::numeric_limits<double>::infinity();
  std::int64_t reach = 0;
  double operator()(double bytes) const { return std::max(0.0, bytes / rate - slack); }
  /// Takes into account that all but `others` bytes are copied between the instant and a position `between` ns away.
  void consider(double others, double between, std::int64_t position) {
    if (const double s = others / rate + between; s < slack) slack = s, reach = position;
  }
};

/// Time lost before an instant, the larger of two costs: the cost of the copies out alone; and the joint cost of the
/// copies out and of those copies in whose content began on the host.
struct Before {
  Ramp out, both;
  double operator()(double bytes) const { return std::max(out(bytes), both(bytes)); }
  std::int64_t reach(double bytes) const {
    return both(bytes) > out(bytes) ? std::min(both.reach, out.reach) : out.reach;
  }
};

/// The least time of reruns that bring z bytes back: convex, piecewise linear, 0 at z = 0.
class RerunCost {
 public:
  struct Piece {
    double time, bytes;  ///< the next `bytes` bytes, more than 0, cost `time` ns
  };
  /// @param pieces  least time per byte first
  explicit RerunCost(std::vector<Piece> pieces) : pieces_{std::move(pieces)} {}

  struct Choice {
    LostTime lost;
    double again = 0;  ///< z, in bytes
  };
  /// The least of before(E - z) + max(after(E - z), C(z)) over all z that can be brought back, where at most
  /// `swappable` bytes may be copied. The function is convex and piecewise linear, so the least value is at a corner.
  /// Infinite if there is no such z.
  Choice least(double excess, double swappable, const Before& before, const Ramp& after) const;

 private:
  std::vector<Piece> pieces_;
};

}  // namespace tidepool
