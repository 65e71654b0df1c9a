// Properties of the terminal: its width, colours and characters.
#pragma once

#include <cstddef>

namespace tidepool {

/// The width of the terminal on stdout in columns; without a terminal, $COLUMNS or else 80. At least 40.
std::size_t terminal_width();

/// Whether stdout is a terminal whose user wants colours ($NO_COLOR is unset or empty).
bool colour_wanted();

/// Whether the locale's characters are UTF-8: LC_ALL, or else LC_CTYPE, or else LANG says so.
bool locale_is_utf8();

}  // namespace tidepool
