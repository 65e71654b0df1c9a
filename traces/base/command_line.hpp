// Subcommands, which register themselves, each in the folder of its subject, and their options. CLI11 parses them; only
// command_line.cpp and the program's main file compile it, since each file that includes CLI11 takes ten seconds to
// build.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace tidepool {

/// An option that was added. Its functions set further properties.
class CommandOption {
 public:
  explicit CommandOption(CLI::Option* option) : option_{option} {}

  CommandOption required() const;
  /// Shows the value that the variable has now as the default.
  CommandOption capture_default_str() const;
  /// The word for a value in the help, as in FILE.
  CommandOption type_name(const std::string& name) const;
  /// Refuses values outside [least, most].
  CommandOption range(std::int64_t least, std::int64_t most) const;
  CommandOption range(double least, double most) const;
  /// Refuses 0 and less.
  CommandOption positive() const;
  /// Refuses this option without the other one.
  CommandOption needs(CommandOption other) const;
  CommandOption needs(const std::string& name) const;

 private:
  CLI::Option* option_;
};

/// The declarations of a subcommand: `names` is "trace" for a positional word, "-o,--output" for an option,
/// "!--no-color" for a flag that clears its variable. Variables must live until the command line is parsed.
class CommandLine {
 public:
  /// @param behind_dashes  number of words of the command line behind its first --
  explicit CommandLine(CLI::App& app, std::size_t behind_dashes = 0) : app_{&app}, behind_dashes_{behind_dashes} {}

  CommandOption add_option(const std::string& names, std::string& variable, const std::string& meaning) const;
  CommandOption add_option(const std::string& names, std::optional<std::string>& variable,
                           const std::string& meaning) const;
  CommandOption add_option(const std::string& names, std::vector<std::string>& variable,
                           const std::string& meaning) const;
  CommandOption add_option(const std::string& names, int& variable, const std::string& meaning) const;
  CommandOption add_option(const std::string& names, std::optional<int>& variable, const std::string& meaning) const;
  CommandOption add_option(const std::string& names, std::int64_t& variable, const std::string& meaning) const;
  CommandOption add_option(const std::string& names, std::optional<std::int64_t>& variable,
                           const std::string& meaning) const;
  CommandOption add_option(const std::string& names, std::uint64_t& variable, const std::string& meaning) const;
  CommandOption add_option(const std::string& names, std::optional<std::uint64_t>& variable,
                           const std::string& meaning) const;
  CommandOption add_option(const std::string& names, double& variable, const std::string& meaning) const;
  CommandOption add_option(const std::string& names, std::optional<double>& variable, const std::string& meaning) const;
  CommandOption add_flag(const std::string& names, bool& variable, const std::string& meaning) const;
  /// How often the option of this name was given.
  std::size_t count(const std::string& name) const;
  /// The long names of all options that were given, as in "--pool".
  std::vector<std::string> given() const;
  /// The number of words behind the first --. They are the last of the arguments without a name.
  std::size_t behind_dashes() const { return behind_dashes_; }

 private:
  CLI::App* app_;
  std::size_t behind_dashes_;
};

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
