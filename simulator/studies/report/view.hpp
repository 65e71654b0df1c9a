// View of a run as text, for a quick look in a terminal.
#pragma once

#include <string>

#include "simulator/studies/report/history.hpp"
#include "traces/trace.hpp"

namespace tidepool {

struct ViewOptions {
  std::size_t width = 80;
  bool colour = false;  ///< a colour for each kind's letters
  bool utf8 = false;    ///< shades and lines instead of ASCII
};

/// Memory over time, stacked by kind, with the largest sum of each column; the bytes at the peak by kind, with the
/// largest buffers; and for each lane the busy share of each column.
std::string view_text(const Trace& trace, const History& history, Bytes capacity, const ViewOptions& options);

}  // namespace tidepool
