#include "traces/base/command_line.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include "traces/base/refuse.hpp"

namespace tidepool {

namespace {

/// Refuses numbers with a sign. CLI11 alone would read -1 as the largest unsigned number.
CLI::Option* unsigned_only(CLI::Option* option) {
  return option->check([option](const std::string& text) {
    std::uint64_t number = 0;
    const char* const all = text.data() + text.size();
    const auto [end, error] = std::from_chars(text.data(), all, number);
    if (error != std::errc{} || end != all)
      refuse("{}: '{}' is no unsigned number; expected a whole number from 0 to {}", option->get_name(), text,
             UINT64_MAX);
    return std::string{};
  });
}

/// Refuses an option whose value is "", as from a variable of the shell that is not set. `variable` is "" if the option
/// is not given, so that "" would be taken as no option.
CLI::Option* no_empty_value(CLI::Option* option, const std::string& variable) {
  if (option->get_positional() || !variable.empty()) return option;
  return option->check([option](const std::string& text) {
    if (text.empty())
      refuse("{}: the value is empty; expected one",
             option->get_snames().empty() ? option->get_name() : "-" + option->get_snames().front());
    return std::string{};
  });
}

std::vector<Command>& registry() {
  static std::vector<Command> commands;
  return commands;
}

}  // namespace

CommandOption CommandOption::required() const { return CommandOption{option_->required()}; }

CommandOption CommandOption::capture_default_str() const {
  option_->capture_default_str();
  return *this;
}

CommandOption CommandOption::type_name(const std::string& name) const {
  option_->type_name(name);
  return *this;
}

CommandOption CommandOption::range(std::int64_t least, std::int64_t most) const {
  option_->check(CLI::Range(least, most));
  return *this;
}

CommandOption CommandOption::range(double least, double most) const {
  option_->check(CLI::Range(least, most));
  option_->check([option = option_, least, most](const std::string& text) {  // CLI11 alone takes nan
    if (double value = 0; CLI::detail::lexical_cast(text, value) && std::isnan(value))
      refuse("{}: '{}' is no number; expected one from {} to {}", option->get_name(), text, least, most);
    return std::string{};
  });
  return *this;
}

CommandOption CommandOption::positive() const {
  const auto check = [option = option_](const std::string& text) {
    if (std::int64_t value = 0; CLI::detail::lexical_cast(text, value) && value <= 0)
      refuse("{}: {}; expected 1 or more", option->get_name(), text);
    return std::string{};
  };
  option_->check(CLI::Validator{check, "POSITIVE"});
  return *this;
}

CommandOption CommandOption::needs(CommandOption other) const {
  option_->needs(other.option_);
  return *this;
}

CommandOption CommandOption::needs(const std::string& name) const {
  option_->needs(name);
  return *this;
}

CommandOption CommandLine::add_option(const std::string& names, std::string& variable,
                                      const std::string& meaning) const {
  return CommandOption{no_empty_value(app_->add_option(names, variable, meaning), variable)};
}

CommandOption CommandLine::add_option(const std::string& names, std::optional<std::string>& variable,
                                      const std::string& meaning) const {
  return CommandOption{app_->add_option(names, variable, meaning)};
}

CommandOption CommandLine::add_option(const std::string& names, std::vector<std::string>& variable,
                                      const std::string& meaning) const {
  return CommandOption{app_->add_option(names, variable, meaning)};
}

CommandOption CommandLine::add_option(const std::string& names, int& variable, const std::string& meaning) const {
  return CommandOption{app_->add_option(names, variable, meaning)};
}

CommandOption CommandLine::add_option(const std::string& names, std::optional<int>& variable,
                                      const std::string& meaning) const {
  return CommandOption{app_->add_option(names, variable, meaning)};
}

CommandOption CommandLine::add_option(const std::string& names, std::int64_t& variable,
                                      const std::string& meaning) const {
  return CommandOption{app_->add_option(names, variable, meaning)};
}

CommandOption CommandLine::add_option(const std::string& names, std::optional<std::int64_t>& variable,
                                      const std::string& meaning) const {
  return CommandOption{app_->add_option(names, variable, meaning)};
}

CommandOption CommandLine::add_option(const std::string& names, std::uint64_t& variable,
                                      const std::string& meaning) const {
  return CommandOption{unsigned_only(app_->add_option(names, variable, meaning))};
}

CommandOption CommandLine::add_option(const std::string& names, std::optional<std::uint64_t>& variable,
                                      const std::string& meaning) const {
  return CommandOption{unsigned_only(app_->add_option(names, variable, meaning))};
}

CommandOption CommandLine::add_option(const std::string& names, double& variable, const std::string& meaning) const {
  return CommandOption{app_->add_option(names, variable, meaning)};
}

CommandOption CommandLine::add_option(const std::string& names, std::optional<double>& variable,
                                      const std::string& meaning) const {
  return CommandOption{app_->add_option(names, variable, meaning)};
}

CommandOption CommandLine::add_flag(const std::string& names, bool& variable, const std::string& meaning) const {
  return CommandOption{app_->add_flag(names, variable, meaning)};
}

std::vector<std::string> CommandLine::given() const {
  std::vector<std::string> names;
  for (const CLI::Option* option : app_->get_options())
    if (option->count() > 0 && !option->get_lnames().empty()) names.push_back("--" + option->get_lnames()[0]);
  return names;
}

std::size_t CommandLine::count(const std::string& name) const { return app_->count(name); }

RegisterCommand::RegisterCommand(Command command) {
  std::vector<Command>& all = registry();
  const auto later = [](const Command& a, const Command& b) { return a.name < b.name; };
  all.insert(std::upper_bound(all.begin(), all.end(), command, later), std::move(command));
}

const std::vector<Command>& all_commands() { return registry(); }

}  // namespace tidepool
