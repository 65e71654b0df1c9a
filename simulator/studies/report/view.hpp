// Pictures of a run as text, for a quick look in a terminal: memory over time, and addresses at one moment.
#pragma once

#include <fmt/format.h>

#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "simulator/studies/report/history.hpp"
#include "traces/trace.hpp"

namespace tidepool {

inline constexpr std::string_view kKindLetters = "?pgoawi";            // by BufferKind
inline constexpr std::array kKindColours{37, 34, 31, 35, 32, 33, 36};  // by BufferKind

/// Text in the colour of a kind, if colours are wanted.
inline std::string painted(std::string_view text, std::size_t kind, bool colour) {
  return colour ? fmt::format("\x1b[{}m{}\x1b[0m", kKindColours[kind], text) : std::string{text};
}

struct ViewOptions {
  std::size_t width = 80;
  bool colour = false;  ///< a colour for each kind's letters
  bool utf8 = false;    ///< shades and lines instead of ASCII
};

/// Memory over time, stacked by kind, with the largest sum of each column; the bytes at the peak by kind, with the
/// largest buffers; and for each lane the busy share of each column.
std::string view_text(const Trace& trace, const History& history, Bytes capacity, const ViewOptions& options);

/// The moment at which an op begins for the first time; none if it does not run in the history.
std::optional<Nanos> begin_of(const History& history, OpId op);

/// The moment of the largest sum of bytes; the beginning of the history if nothing is ever in memory.
Nanos peak_moment(const History& history);

/// A map of addresses from 0 on, line by line. Each character stands for the same number of bytes: it is the letter of
/// the kind that has most of them, or a point if all are free. A table below the map has the bytes, the number of
/// pieces and the largest piece of each kind and of the holes. The last hole ends at the capacity; without a capacity,
/// at the last address in use in the history. If the pool reserves segments, only the segments are drawn, side by side,
/// with the holes within them.
/// @throws InputError  "--map: the pool ideal gives no addresses; expected one that does"
std::string address_map_text(const Trace& trace, const History& history, const RunSpec& spec, Nanos moment,
                             const ViewOptions& options);

}  // namespace tidepool
