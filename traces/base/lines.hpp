// Readers of lines with line numbers, and of whole numbers; shared by the importers of text formats.
#pragma once

#include <fmt/format.h>

#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "traces/base/error.hpp"
#include "traces/base/total.hpp"

namespace tidepool {

/// Walks over the lines of a text. Line ends are "\n" or "\r\n"; the last line needs none.
class Lines {
 public:
  /// @param file  for messages
  /// @param text  must outlive this
  Lines(std::string file, std::string_view text) : file_{std::move(file)}, rest_{text} {}

  /// Steps to the next line. @return  whether there is one
  bool next() {
    if (rest_.empty()) return false;
    const std::size_t end = rest_.find('\n');
    line_ = rest_.substr(0, end);
    rest_.remove_prefix(end == std::string_view::npos ? rest_.size() : end + 1);
    if (line_.ends_with('\r')) line_.remove_suffix(1);
    ++number_;
    return true;
  }

  std::string_view text() const { return line_; }
  /// Counts from 1.
  std::uint32_t number() const { return number_; }
  /// "file:line", for InputError::at.
  std::string position() const { return position(number_); }
  std::string position(std::uint32_t line) const { return fmt::format("{}:{}", file_, line); }

  /// @throws InputError  "file:line: " and the message
  template <class... Args>
  [[noreturn]] void refuse(fmt::format_string<Args...> text, Args&&... args) const {
    throw InputError{fmt::format(text, std::forward<Args>(args)...)}.at(position());
  }

 private:
  std::string file_;
  std::string_view rest_;
  std::string_view line_;
  std::uint32_t number_ = 0;
};

/// The whole text as a whole number, decimal, or hexadecimal after "0x"; none if it is no such number of 64 bits.
inline std::optional<std::int64_t> parse_whole(std::string_view text) {
  const bool hexadecimal = text.starts_with("0x") || text.starts_with("0X");
  if (hexadecimal) text.remove_prefix(2);
  if (hexadecimal && text.starts_with('-')) return {};
  std::int64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value, hexadecimal ? 16 : 10);
  if (error != std::errc{} || stop != end) return {};
  return value;
}

/// A text of unknown origin for messages, cut after 60 bytes. Bytes that are not printable ASCII become '?'.
inline std::string excerpt(std::string_view text) {
  constexpr std::size_t kLongest = 60;
  std::string shown{text.substr(0, kLongest)};
  for (char& c : shown)
    if (static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) >= 0x7f) c = '?';
  return text.size() > kLongest ? shown + "..." : shown;
}

/// Adds to a total. @throws InputError  naming the line, if the total becomes too large
inline void add(Total& total, std::int64_t value, std::string_view what, const Lines& lines) {
  try {
    total.add(value, what);
  } catch (const InputError& error) {
    throw error.at(lines.position());
  }
}

}  // namespace tidepool
