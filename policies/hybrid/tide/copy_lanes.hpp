// Two copies under way, one each way, and how they slow each other down.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "simulator/machine.hpp"

namespace tidepool {

/// At most one copy in each direction, with the times of Links: a copy first takes its latency; then it moves data, at
/// Link::duplex_ppm of its rate while the other direction moves data too. Work left is kept in millionths of a
/// nanosecond, and ends are rounded up to one.
class CopyLanes {
 public:
  enum Lane : std::size_t { kOut, kIn };
  static constexpr std::uint32_t kIdle = ~std::uint32_t{0};
  static constexpr Nanos kNever{std::numeric_limits<std::int64_t>::max()};

  explicit CopyLanes(const Machine& machine)
      : shared_{machine.d2h.duplex_ppm, machine.h2d.duplex_ppm}, latency_{machine.d2h.latency, machine.h2d.latency} {}

  void reset() { now_ = Nanos{}, lanes_ = {}; }
  Nanos now() const { return now_; }
  /// The copy under way; kIdle if there is none.
  std::uint32_t copy(Lane lane) const { return lanes_[lane].copy; }
  bool idle() const { return copy(kOut) == kIdle && copy(kIn) == kIdle; }

  /// Begins a copy now, on an idle lane. @param time  of the copy if it has the link to itself
  void begin(Lane lane, std::uint32_t copy, Nanos time) {
    const Nanos latency = std::min(latency_[lane], time);
    lanes_[lane] = {copy, latency, (time - latency).count() * kFull};
  }

  /// Advances to the next time at which a copy ends or begins to move data, but not beyond `limit`.
  /// @return  whether a copy of the lane has ended; its lane is idle from then on
  std::array<bool, 2> advance(Nanos limit) {
    const std::array<std::int64_t, 2> rate = rates();
    Nanos next = limit;
    for (const Lane lane : {kOut, kIn}) next = std::min(next, end_of_phase(lanes_[lane], rate[lane]));
    const Nanos passed = std::max(next - now_, Nanos{});
    now_ += passed;
    std::array<bool, 2> ended{};
    for (const Lane lane : {kOut, kIn}) {
      Copy& copy = lanes_[lane];
      if (copy.copy == kIdle) continue;
      if (copy.latency > Nanos{})
        copy.latency -= passed;
      else
        copy.left = std::max<std::int64_t>(copy.left - passed.count() * rate[lane], 0);
      if (copy.latency > Nanos{} || copy.left > 0) continue;
      copy = {};
      ended[lane] = true;
    }
    return ended;
  }

 private:
  static constexpr std::int64_t kFull = 1'000'000;
  struct Copy {
    std::uint32_t copy = kIdle;
    Nanos latency;          ///< still to wait
    std::int64_t left = 0;  ///< work, in millionths of a nanosecond at the full rate
  };

  std::array<std::int64_t, 2> rates() const {
    const auto moves = [](const Copy& copy) { return copy.copy != kIdle && copy.latency == Nanos{}; };
    if (moves(lanes_[kOut]) && moves(lanes_[kIn])) return shared_;
    return {kFull, kFull};
  }
  Nanos end_of_phase(const Copy& copy, std::int64_t rate) const {
    if (copy.copy == kIdle) return kNever;
    return now_ + (copy.latency > Nanos{} ? copy.latency : Nanos{(copy.left + rate - 1) / rate});
  }

  std::array<std::int64_t, 2> shared_;  // rates while both directions move data, in millionths
  std::array<Nanos, 2> latency_;
  Nanos now_;
  std::array<Copy, 2> lanes_;
};

}  // namespace tidepool
