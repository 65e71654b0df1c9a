// The end of a program that was asked to stop, if its work does not stop by itself.
#pragma once

#include <functional>
#include <thread>

namespace tidepool {

/// While an object lives, an interruption (see Interruptible) that lasts for half a second ends the program: it calls
/// `last`, which says what is known so far, and exits with Interruptible::code(). For work that does not look whether
/// it is interrupted, such as a search for a plan.
class EndsAtOnce {
 public:
  explicit EndsAtOnce(std::function<void()> last);

 private:
  std::jthread thread_;
};

}  // namespace tidepool
