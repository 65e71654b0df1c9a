// Throwing an InputError with a formatted message.
#pragma once

#include <fmt/format.h>

#include <utility>

#include "traces/error.hpp"

namespace tidepool {

template <class... Args>
[[noreturn]] void refuse(fmt::format_string<Args...> text, Args&&... args) {
  throw InputError{fmt::format(text, std::forward<Args>(args)...)};
}

}  // namespace tidepool
