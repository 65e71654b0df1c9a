// Running the user's command with a changed environment, as a shell would.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace tidepool {

/// What a command is given beyond what this process has.
struct ChildOptions {
  std::map<std::string, std::string> environment;  ///< set over what is there
  bool output_to_stderr = false;                   ///< its standard output goes where its errors go
};

/// Runs a command and waits for it. Meanwhile interrupts from the terminal are the command's own matter, and SIGTERM
/// and SIGHUP are passed on to it.
/// @return  its exit status; 128 + N if signal N ended it
/// @throws InputError  "train.py: cannot be run: Permission denied"
int run_child(const std::vector<std::string>& command, const ChildOptions& options = {});

/// `added` in front of the list of folders that variable `name` holds already, separated by colons.
std::string prepended(const std::string& name, const std::string& added);

/// The folder of the Python packages that belong to this program: TIDEPOOL_PYTHON, or python/ next to the program, or
/// share/tidepool/python where it is installed.
/// @throws InputError  if there is none
std::string python_folder();

}  // namespace tidepool
