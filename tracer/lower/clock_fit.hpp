// Conversion of one capture file's times to the clock that all files share.
#pragma once

#include <cstdint>
#include <vector>

#include "tracer/raw/log.hpp"

namespace tidepool {

/// Maps a file's clock to CLOCK_MONOTONIC_RAW, by straight lines between readings of both clocks. Before the first and
/// after the last reading, both clocks count as equally fast. In a file without readings, the header's times take the
/// place of one. Times of a file whose clock is CLOCK_MONOTONIC_RAW, or that has neither, stay the same.
class ClockFit {
 public:
  /// @param log  must outlive this object
  explicit ClockFit(const raw::Log& log);

  /// @throws InputError  "x.raw: time 4611686018427387904; expected -2^61 to 2^61"
  /// @throws InputError  "x.raw: time 7 is 4611686018427387904 on the common clock; expected -2^61 to 2^61"
  std::int64_t common(std::int64_t time) const;
  /// The largest distance, in ns, of a reading from the straight line between its neighbours.
  std::int64_t residual() const;

 private:
  struct Reading {
    std::int64_t time;
    std::int64_t common;
  };
  static std::int64_t between(const Reading& a, const Reading& b, std::int64_t time);

  const raw::Log& log_;
  std::vector<Reading> readings_;  // ascending in both
};

}  // namespace tidepool
