// Running other programs: the user's command as a shell would, and what commands are made of.
#pragma once

#include <sys/types.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace tidepool {

/// What a command is given beyond what this process has.
struct ChildOptions {
  std::map<std::string, std::string> environment;  ///< set over what is there
  int output = -1;  ///< a descriptor for its standard output; -1: where this process's goes
  int errors = -1;  ///< and for its standard error
  /// Called in the child before it becomes the command, and in this process when it has begun; no signal that ends or
  /// interrupts programs is delivered to either in between.
  std::function<void()> in_child = {};
  std::function<void(pid_t)> begun = {};
};

/// Starts a command, found in PATH.
/// @throws InputError  "train.py: cannot be run: Permission denied"
pid_t start_child(const std::vector<std::string>& command, const ChildOptions& options);

/// What a shell calls the end that waitpid tells: the exit status; 128 + N if signal N ended it.
int exit_status(int status);

/// Runs a command and waits for it. Meanwhile interrupts from the terminal are the command's own matter, and SIGTERM
/// and SIGHUP are passed on to it.
/// @return  its exit status; 128 + N if signal N ended it
/// @throws InputError  "train.py: cannot be run: Permission denied"
int run_child(const std::vector<std::string>& command, ChildOptions options = {});

/// How a command ended, from what run_child() returned: "was killed by SIGKILL", "ended with exit status 3".
std::string how_it_ended(int status);

/// `added` in front of the list of folders that variable `name` holds already, separated by colons.
std::string prepended(const std::string& name, const std::string& added);

/// The folder of the Python packages that belong to this program: TIDEPOOL_PYTHON, or python/ next to the program, or
/// share/tidepool/python where it is installed.
/// @throws InputError  if there is none
std::string python_folder();

}  // namespace tidepool
