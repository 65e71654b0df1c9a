// Messages on stderr.
#pragma once

#include <fmt/format.h>

#include <string_view>
#include <utility>

namespace tidepool {

/// Writes a text to stderr. If that is impossible (a closed descriptor, a full disk, a pipe without a reader), the text
/// is lost, and the program goes on.
void say_text(std::string_view text) noexcept;

/// The same for a formatted text.
template <class... Args>
void say(fmt::format_string<Args...> text, Args&&... args) {
  say_text(fmt::format(text, std::forward<Args>(args)...));
}

}  // namespace tidepool
