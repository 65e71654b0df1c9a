// Ctrl-C and SIGTERM during work that keeps its results when it is interrupted.
#pragma once

#include <atomic>
#include <csignal>
#include <string>

namespace tidepool {

/// From now on, Ctrl-C and SIGTERM end the program with the exit code that a shell reports, and with a word that there
/// is no answer; not where the caller had them ignored, as nohup does, nor while an Interruptible lives.
void end_with_a_word(const std::string& command);

/// While an object lives, the first Ctrl-C or SIGTERM asks the work to stop, and a second one of the same kind ends the
/// program.
/// SIGXFSZ is ignored, so that a file at its size limit gives a write error. One object at a time.
class Interruptible {
 public:
  Interruptible();
  ~Interruptible();
  Interruptible(const Interruptible&) = delete;
  Interruptible& operator=(const Interruptible&) = delete;

  /// Becomes true when the work is asked to stop, and stays true.
  static const std::atomic<bool>& asked();
  /// The exit code after an interruption, as a shell reports the signal: 130 after Ctrl-C, 143 after SIGTERM. Else 0.
  static int code();

 private:
  struct sigaction before_int_ = {}, before_term_ = {}, before_size_ = {};
};

}  // namespace tidepool
