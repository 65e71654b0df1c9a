// Plot of a sweep's frontier as text: overhead against memory.
#pragma once

#include <string>

#include "simulator/studies/sweep/frontier.hpp"

namespace tidepool {

struct PlotOptions {
  std::size_t width = 80;
  std::size_t height = 16;  ///< rows above the horizontal axis, at least 4
  bool colour = false;      ///< letters in colours of their own
};

/// A plot with a letter for every policy at every capacity where it ends well (with the best of its pools), and dots
/// along the best of all policies. The vertical axis is about linear up to 1 % and logarithmic above; overheads above
/// 1000 % are left out. "" if nothing remains to be drawn.
std::string plot(const Frontier& frontier, const PlotOptions& options);

}  // namespace tidepool
