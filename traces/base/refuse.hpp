// Errors in a user's input, with a formatted message and the position.
#pragma once

#include <fmt/format.h>

#include <string>
#include <utility>

#include "traces/base/error.hpp"

namespace tidepool {

template <class... Args>
[[noreturn]] void refuse(fmt::format_string<Args...> text, Args&&... args) {
  throw InputError{fmt::format(text, std::forward<Args>(args)...)};
}

/// Calls `work`. The message of an InputError gets `position` in front, such as the name of a file or an option.
template <class Work>
auto naming(const std::string& position, const Work& work) {
  try {
    return work();
  } catch (const InputError& error) {
    throw error.at(position);
  }
}

}  // namespace tidepool
