// Long work: signs of life, and Ctrl-C and SIGTERM, after which it keeps its results or ends at once.
#pragma once

#include <atomic>
#include <csignal>
#include <functional>
#include <string>
#include <thread>

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

/// While an object lives, an interruption (see Interruptible) that lasts for half a second ends the program: it calls
/// `last`, which says what is known so far, and exits with Interruptible::code(). For work that does not look whether
/// it is interrupted, such as a search for a plan.
class EndsAtOnce {
 public:
  explicit EndsAtOnce(std::function<void()> last);

 private:
  std::jthread thread_;
};

/// While an object lives, says every 30 s for how long the command has worked, and on a terminal also after 2 s.
class StillWorking {
 public:
  /// @param on_terminal  whether to say so on a terminal, too
  StillWorking(const std::string& command, bool on_terminal);

 private:
  std::jthread thread_;
};

}  // namespace tidepool
