#include "traces/base/command.hpp"

#include <algorithm>
#include <utility>

namespace tidepool {
namespace {

std::vector<Command>& registry() {
  static std::vector<Command> commands;
  return commands;
}

}  // namespace

RegisterCommand::RegisterCommand(Command command) {
  std::vector<Command>& all = registry();
  const auto later = [](const Command& a, const Command& b) { return a.name < b.name; };
  all.insert(std::upper_bound(all.begin(), all.end(), command, later), std::move(command));
}

const std::vector<Command>& all_commands() { return registry(); }

}  // namespace tidepool
