// Child processes that run a command as a shell does, and the environment that these commands need.
#pragma once

#include <sys/types.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace tidepool {

/// Settings of a command, beyond those of this process.
struct ChildOptions {
  std::map<std::string, std::string> environment;  ///< variables that are set or replaced
  int output = -1;                                 ///< a descriptor for its standard output; -1: that of this process
  int errors = -1;                                 ///< a descriptor for its standard error; -1: that of this process
  /// Called in the child before it becomes the command. Signals that end or interrupt programs are blocked while this
  /// function and `begun` run.
  std::function<void()> in_child = {};
  std::function<void(pid_t)> begun = {};  ///< called in this process after the fork, with the id of the child
};

/// Starts a command, found in PATH. @return  the id of its process
/// @throws InputError  "train.py: cannot be run: Permission denied"
pid_t start_child(const std::vector<std::string>& command, const ChildOptions& options);

/// The status from waitpid as a shell reports it: the exit status; 128 + N if signal N ended the process.
int exit_status(int status);

/// Runs a command and waits for it. Meanwhile, this process goes on at signals, and passes those that others send on to
/// the command, which gets those of the terminal itself. The functions in `options` are not called.
/// @return  its exit status; 128 + N if signal N ended it
/// @throws InputError  "train.py: cannot be run: Permission denied"
int run_child(const std::vector<std::string>& command, ChildOptions options = {});

/// The end of a command in words, from the result of run_child(): "was killed by SIGKILL", "ended with exit status 3".
std::string how_it_ended(int status);

/// The list of folders in the environment variable `name`, separated by colons, with `added` in front.
std::string prepended(const std::string& name, const std::string& added);

/// The folder of the Python packages that belong to this program: TIDEPOOL_PYTHON, or python/ next to the program, or
/// share/tidepool/python where it is installed.
/// @throws InputError  if there is none
std::string python_folder();

}  // namespace tidepool
