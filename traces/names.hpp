// The words for the enums of a trace, as in files and messages.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "traces/trace.hpp"

namespace tidepool {

/// All words of one enum, in the order of its values. Defined for BufferKind, OpKind, Phase, Access, Evidence,
/// MarkKind, VersionKind and EventKind.
template <class Enum>
std::span<const std::string_view> words();

template <class Enum>
std::string_view word(Enum value) {
  return words<Enum>()[static_cast<std::size_t>(value)];
}

/// The words as a list for messages: "read, write or touch".
std::string choices(std::span<const std::string_view> words);

}  // namespace tidepool
