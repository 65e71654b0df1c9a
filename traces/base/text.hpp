// Text for people and files: numbers and counts, what can be kept and printed, JSON on one line, messages on stderr.
#pragma once

#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace tidepool {

/// "3,426".
std::string grouped(std::int64_t number);

/// "4.9 M", "12.3 k", "870": to three significant digits, or a whole number of G, for numbers of at least 0.
std::string short_number(double number);

/// "1 run", "3,426 runs".
std::string counted(std::int64_t number, std::string_view what);

/// A number to so many significant digits ("1.5", "0.0123"); a larger one to a whole number ("16400"). Below 10^-4, it
/// has an exponent.
inline std::string with_digits(double number, int digits) {
  const bool fits = std::abs(number) < std::pow(10, digits) - 0.5;  // 999.5 would be rounded to four digits
  return fits ? fmt::format("{:.{}g}", number, digits) : fmt::format("{:.0f}", number);
}

/// Whether a text can be kept in traces, databases and JSON.
bool is_utf8(const std::string& text);

/// The text with characters that control a terminal as escapes, as in \x1b for ESC and \u202e for an override of the
/// direction. Names come from files of any origin, and are printed.
std::string printable(std::string text);

/// The same for lines: newlines and tabs stay, and so does kLineAgain.
std::string printable_lines(std::string_view text);

/// Begins a line that replaces the last one, as progress does.
inline constexpr std::string_view kLineAgain = "\r\x1b[K";

/// `json` on one line. Bytes that are not UTF-8, as in names of files, become U+FFFD.
template <typename Json>
std::string json_text(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

/// Writes a text to stderr. If that is impossible (a closed descriptor, a full disk, a pipe without a reader), the text
/// is lost, and the program goes on.
void say_text(std::string_view text) noexcept;

/// The same for a formatted text.
template <class... Args>
void say(fmt::format_string<Args...> text, Args&&... args) {
  say_text(fmt::format(text, std::forward<Args>(args)...));
}

}  // namespace tidepool
