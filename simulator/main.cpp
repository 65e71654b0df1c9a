// The program: lists the subcommands, runs one, turns errors into exit codes.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>

#include "traces/command.hpp"
#include "traces/error.hpp"

int main(int argc, char** argv) {
  CLI::App app{"What would this training step cost, in bytes and in time, under another memory policy?", "tidepool"};
  app.set_version_flag("--version", "tidepool " TIDEPOOL_VERSION);
  app.require_subcommand(1);
  std::function<int()> chosen;
  for (const tidepool::Command& command : tidepool::all_commands()) {
    CLI::App* sub = app.add_subcommand(command.name, command.summary);
    sub->callback([&chosen, run = command.declare(*sub)] { chosen = run; });
  }
  try {
    app.parse(argc, argv);
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
