// Texts that can be kept in traces, databases and JSON.
#pragma once

#include <string>
#include <string_view>

namespace tidepool {

bool is_utf8(const std::string& text);

/// The text with characters that control a terminal as escapes, as in \x1b for ESC and \u202e for an override of the
/// direction. Names come from files of any origin, and are printed.
std::string printable(std::string text);

/// The same for lines: newlines and tabs stay, and so does kLineAgain.
std::string printable_lines(std::string_view text);

/// Begins a line that replaces the last one, as progress does.
inline constexpr std::string_view kLineAgain = "\r\x1b[K";

}  // namespace tidepool
