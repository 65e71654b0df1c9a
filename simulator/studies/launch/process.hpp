// Runs of other programs, for their output.
#pragma once

#include <atomic>
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

}  // namespace tidepool
