// A time that may not be known yet, because it depends on copies under way.
#pragma once

#include <algorithm>
#include <cstdint>

#include "traces/base/quantity.hpp"

namespace tidepool {

/// Copies, by their number in each direction of the link; numbers count from 1, and 0 is no copy. A direction ends its
/// copies in order, so the largest number stands for all before it.
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
