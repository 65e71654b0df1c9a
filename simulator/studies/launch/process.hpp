// Runs of other programs, for their output, and work in a copy of this process, which ends when its time is over.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace tidepool {

struct ProcessResult {
  int code = 0;      ///< exit code; if a signal ended the program, 128 + the signal
  std::string said;  ///< stdout and stderr, if captured; of a long output the last 16 MiB
};

/// Runs a program, found in PATH, and waits for it. A signal to this program does not end the wait.
/// @param capture  whether to keep its output; else it has this program's streams
/// @param stop     when true, the program gets SIGTERM
/// @throws InputError  "sbatch: cannot be run: No such file or directory"
ProcessResult run_process(const std::vector<std::string>& arguments, bool capture = true,
                          const std::atomic<bool>* stop = nullptr);

/// Refuses a program that is not in PATH. @throws InputError  "sbatch: cannot be run: No such file or directory"
void require_program(const std::string& name);

/// A text as one word of a shell's command line.
std::string shell_word(const std::string& text);

/// The text that `work` returns; none if it has not ended after so much time of the processor (or ten times as much on
/// the clock), or if Interruptible::asked(). The work is done by a copy of this process, so that it can be ended at any
/// point.
/// @throws InputError  if `work` throws it; std::runtime_error  if it throws anything else or the copy dies
/// @param used  grows by the time of the processor that the work took
std::optional<std::string> in_time(std::chrono::milliseconds limit, const std::function<std::string()>& work,
                                   std::chrono::nanoseconds& used);

}  // namespace tidepool
