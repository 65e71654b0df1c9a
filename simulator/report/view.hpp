// A run as text: for a quick look over ssh.
#pragma once

#include <string>

#include "simulator/report/history.hpp"
#include "traces/trace.hpp"

namespace tidepool {

struct ViewOptions {
  std::size_t width = 80;
  bool colour = false;  ///< letters of kinds in colours of their own
  bool utf8 = false;    ///< shades and lines instead of ASCII
};

/// Memory over time, each column the moment of its largest sum, stacked by kind; what the peak is made of and the
/// largest buffers in it; what share of each column the lanes are busy.
std::string view_text(const Trace& trace, const History& history, Bytes capacity, const ViewOptions& options);

}  // namespace tidepool
