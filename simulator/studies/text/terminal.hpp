// The runs of a sweep as tables and plots for people, and the width, colours and characters of the terminal.
#pragma once

#include <cstddef>
#include <string>

#include "simulator/studies/sweep/frontier.hpp"

namespace tidepool {

/// The width of the terminal on stdout in columns; without a terminal, $COLUMNS or else 80. At least 40.
std::size_t terminal_width();

/// Whether stdout is a terminal whose user wants colours ($NO_COLOR is unset or empty).
bool colour_wanted();

/// Whether the locale's characters are UTF-8: LC_ALL, or else LC_CTYPE, or else LANG says so.
bool locale_is_utf8();

struct PlotOptions {
  std::size_t width = 80;
  std::size_t height = 16;  ///< rows above the horizontal axis, at least 4
  bool colour = false;      ///< letters in colours of their own
};

/// A plot with a letter for every policy at every capacity where it ends well (with the best of its pools), and dots
/// along the best of all policies. The vertical axis is about linear up to 1 % and logarithmic above; overheads above
/// 1000 % are left out. "" if nothing remains to be drawn.
std::string plot(const Frontier& frontier, const PlotOptions& options);

/// A table with a row for every policy and pool and a column for every capacity. Each cell has the overhead in percent,
/// or the reason why there is none. Further rows have the lower bounds on plans of each kind. Columns that do not fit
/// into `width` characters follow in further tables below.
std::string table(const Frontier& frontier, std::size_t width);

}  // namespace tidepool
