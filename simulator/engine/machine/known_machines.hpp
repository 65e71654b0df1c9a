// Files of the known machines, as built into the program.
#pragma once

#include <span>
#include <string_view>

namespace tidepool {

/// Text of every file in simulator/engine/machine/known/, sorted by name.
std::span<const std::string_view> known_machine_files();

}  // namespace tidepool
