// Message of a call that must fail.
#pragma once

#include <stdexcept>
#include <string>

namespace tidepool::tests {

/// The message of the std::runtime_error, such as an InputError, that `call` throws; "" if it throws nothing.
template <class Call>
std::string refusal(const Call& call) {
  try {
    call();
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "";
}

}  // namespace tidepool::tests
