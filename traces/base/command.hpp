// Subcommands register themselves, each in the folder of its subject; the program only lists them.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "traces/base/command_line.hpp"

namespace tidepool {

/// One subcommand. `declare` adds its options to the command line and returns what to run after parsing:
/// a function that returns the exit code (0 done, 1 a run or a check failed) or throws InputError (exit code 2).
struct Command {
  std::string name;
  std::string summary;
  std::vector<std::string> seldom = {};  ///< options that only --help-all lists
  std::function<std::function<int()>(const CommandLine&)> declare;
};

/// A namespace-scope object of this type registers a subcommand.
struct RegisterCommand {
  explicit RegisterCommand(Command command);
};

/// Sorted by name.
const std::vector<Command>& all_commands();

}  // namespace tidepool
