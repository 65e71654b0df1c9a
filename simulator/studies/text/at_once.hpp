// The end of a program that was asked to stop, if its work does not stop by itself.
#pragma once

#include <string>
#include <thread>

namespace tidepool {

/// While an object lives, an interruption (see Interruptible) that lasts for half a second ends the program: it prints
/// the message as a line on stderr, and exits with Interruptible::code(). For work that keeps nothing if it is
/// interrupted, such as a search for a plan.
class EndsAtOnce {
 public:
  explicit EndsAtOnce(std::string message);

 private:
  std::jthread thread_;
};

}  // namespace tidepool
