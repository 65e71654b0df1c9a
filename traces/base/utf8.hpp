// Texts that can be kept in traces, databases and JSON.
#pragma once

#include <string>

namespace tidepool {

bool is_utf8(const std::string& text);

/// The text with characters that control a terminal as escapes, as in \x1b for ESC and \u202e for an override of the
/// direction. Names come from files of any origin, and are printed.
std::string printable(std::string text);

}  // namespace tidepool
