// Search for the iterations of a training loop in the string of its events.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace tidepool {

/// A part of an event string in which event i equals event i + period.
struct PeriodicRun {
  std::size_t first = 0;
  std::size_t last = 0;  ///< one past the end
  bool operator==(const PeriodicRun&) const = default;
};

struct Period {
  std::size_t length = 0;         ///< events per iteration; 0 = none found
  std::vector<PeriodicRun> runs;  ///< at least two iterations each, in order, not overlapping
};

/// The period of a loop that ran for a good part of the recording: the shortest one whose longest run is at least a
/// fifth of the longest run of any period, and whose runs together cover at least 0.6 times as many events as the runs
/// of any other period. So a row of equal frees or of equal layers is not taken for an iteration, and neither is an
/// epoch of many iterations. Periods are looked for at five places, evenly spread, with Z functions (Main and Lorentz
/// 1984), in O(n log n) each; at each place, only the periods of the 16 longest runs count.
Period find_period(std::span<const std::uint32_t> events);

}  // namespace tidepool
