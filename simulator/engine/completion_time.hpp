// A time that may not be known yet, because copies that are under way have a part in it.
#pragma once

#include <algorithm>
#include <cstdint>

#include "traces/quantity.hpp"

namespace tidepool {

/// Copies by their number in each direction of the link, counted from 1; 0 is none. A direction ends its copies in the
/// order in which it got them, so the last of several is known by its number alone.
struct Copies {
  std::uint32_t out = 0;  ///< device to host
  std::uint32_t in = 0;   ///< host to device
  bool none() const { return (out | in) == 0; }
  bool operator==(const Copies&) const = default;
};

/// The later of `time` and the ends of some copies.
struct Moment {
  Nanos time = {};
  Copies after = {};
};

inline Copies latest(Copies a, Copies b) { return {std::max(a.out, b.out), std::max(a.in, b.in)}; }
inline Moment latest(Moment a, Moment b) { return {std::max(a.time, b.time), latest(a.after, b.after)}; }

}  // namespace tidepool
