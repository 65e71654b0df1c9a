// The program: lists the subcommands, runs one, turns errors into exit codes.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>

#include "simulator/registry.hpp"
#include "traces/command.hpp"
#include "traces/error.hpp"

namespace {

/// Plug-ins named in the environment first, then those of the command line.
void load_plugins(const std::vector<std::string>& given) {
  if (const char* paths = std::getenv("TIDEPOOL_PLUGINS"))
    for (const std::string& path : tidepool::split_list(paths, ':'))
      if (!path.empty()) tidepool::load_plugin(path);
  for (const std::string& path : given) tidepool::load_plugin(path);
}

/// @throws InputError  if the first word is no command
void require_command(const char* word) {
  std::vector<std::string> known;
  for (const tidepool::Command& command : tidepool::all_commands()) known.push_back(command.name);
  if (*word != '-' && std::find(known.begin(), known.end(), word) == known.end())
    throw tidepool::InputError{tidepool::unknown_name("command", word, known)};
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"What would this training step cost, in bytes and in time, under another memory policy?", "tidepool"};
  app.set_version_flag("--version", "tidepool " TIDEPOOL_VERSION);
  app.require_subcommand(1);
  std::vector<std::string> plugins;
  app.add_option("--plugin", plugins, "load pools and policies from a shared library (also: TIDEPOOL_PLUGINS=A:B)")
      ->allow_extra_args(false);
  std::function<int()> chosen;
  for (const tidepool::Command& command : tidepool::all_commands()) {
    CLI::App* sub = app.add_subcommand(command.name, command.summary);
    sub->fallthrough();  // --plugin is understood behind the subcommand too
    sub->callback([&chosen, run = command.declare(*sub)] { chosen = run; });
  }
  try {
    if (argc > 1) require_command(argv[1]);
    app.parse(argc, argv);
    load_plugins(plugins);
    return chosen();
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  } catch (const tidepool::InputError& error) {
    fmt::print(stderr, "tidepool: {}\n", error.what());
    return 2;
  } catch (const std::exception& error) {
    fmt::print(stderr, "tidepool: {}\n", error.what());
    return 1;
  }
}
