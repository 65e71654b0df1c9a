// Letters and colours of kinds of buffers in a terminal.
#pragma once

#include <fmt/format.h>

#include <array>
#include <string>
#include <string_view>

namespace tidepool {

inline constexpr std::string_view kKindLetters = "?pgoawi";            // by BufferKind
inline constexpr std::array kKindColours{37, 34, 31, 35, 32, 33, 36};  // by BufferKind

/// Text in the colour of a kind, if colours are wanted.
inline std::string painted(std::string_view text, std::size_t kind, bool colour) {
  return colour ? fmt::format("\x1b[{}m{}\x1b[0m", kKindColours[kind], text) : std::string{text};
}

}  // namespace tidepool
