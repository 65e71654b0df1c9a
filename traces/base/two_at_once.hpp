// Two tasks at the same time.
#pragma once

#include <exception>
#include <system_error>
#include <thread>

namespace tidepool {

/// Runs `first` here and `second` in another thread, and returns when both have ended. Without another thread, one
/// runs after the other. Rethrows what one of them throws; if both do, what `first` throws.
template <class First, class Second>
void two_at_once(First first, Second second) {
  std::exception_ptr thrown;
  bool started = false;
  {
    std::jthread other;
    try {
      other = std::jthread{[&] {
        try {
          second();
        } catch (...) {
          thrown = std::current_exception();
        }
      }};
      started = true;
    } catch (const std::system_error&) {
    }
    first();
  }
  if (!started) second();
  if (thrown) std::rethrow_exception(thrown);
}

}  // namespace tidepool
