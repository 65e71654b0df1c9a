// Ctrl-C and SIGTERM during work that is worth ending well.
#pragma once

#include <atomic>
#include <csignal>

namespace tidepool {

/// While it lives, the first Ctrl-C (or SIGTERM) asks the work to stop, a second one ends the program, and a file that
/// may not grow any further is an error of the one who writes it. One at a time.
class Interruptible {
 public:
  Interruptible();
  ~Interruptible();
  Interruptible(const Interruptible&) = delete;
  Interruptible& operator=(const Interruptible&) = delete;

  /// Becomes true when the work shall stop.
  static const std::atomic<bool>& asked();
  /// The exit code then, as a shell reports the signal: 130 after Ctrl-C, 143 after SIGTERM. 0 if nobody asked.
  static int code();

 private:
  struct sigaction before_int_ = {}, before_term_ = {}, before_size_ = {};
};

}  // namespace tidepool
