// Copies under way on a link whose directions slow each other down. Part of a State.
#pragma once

#include <array>
#include <cstdint>

#include "tests/oracle/tiny_step.hpp"

namespace tidepool::optimum {

struct State;

/// Copies that have not ended. Their ends are not known, since copies that are added later may slow them down. Until an
/// end is known, times of a State that wait for it are its mark(), which is later than every time.
struct SharedLink {
  struct Copy {
    Nanos after;       ///< it begins no earlier
    Nanos after_mark;  ///< mark of a copy of the other direction that must have ended before it begins; 0: none
    std::uint8_t version = 0;
  };
  struct Lane {
    std::array<Copy, kMostVersionsShared> waiting = {};  ///< the first may be under way
    std::uint8_t count = 0;
    bool moves = false;      ///< the first is past its latency
    std::int64_t left = 0;   ///< its data left at `clock`, in millionths of a nanosecond at the full rate
    std::int64_t ended = 0;  ///< number of earlier copies
    Nanos last_end;          ///< end of the last of these
  };
  std::array<Lane, 2> lanes = {};  ///< device to host, host to device
  Nanos clock;                     ///< all events before it have been found

  static constexpr Nanos kMarks{std::int64_t{1} << 60};

  static bool is_mark(Nanos time) { return time >= kMarks; }
  /// Stands for the end of copy `number` of a direction, counted from 1.
  static Nanos mark(std::size_t lane, std::int64_t number) {
    return kMarks + Nanos{number * 2 + static_cast<std::int64_t>(lane)};
  }
};

/// Adds a copy. @return  its mark
Nanos add_copy(State& state, std::size_t lane, const SharedLink::Copy& copy);
/// Advances until the copy whose mark is `time` has ended, and returns its end. If `time` is no mark: returns it.
Nanos resolve(const TinyStep& step, State& state, Nanos time);
/// Advances to `time`; no copy may be added before it afterwards.
void advance(const TinyStep& step, State& state, Nanos time);
/// Advances until all copies have ended.
void drain(const TinyStep& step, State& state);

}  // namespace tidepool::optimum
