// The picture of a run in the terminal: memory over time or by address, what its peak is made of, busy lanes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "simulator/studies/sweep/grid.hpp"

namespace tidepool {

/// The options of a picture.
struct ViewText {
  bool view = false, map = false;
  std::optional<std::uint64_t> at;
};

/// Runs one step and prints its picture.
/// @return  the exit code
/// @throws InputError  "the lists ask for 2 runs; expected one"
int show_run(const std::string& path, const GridText& text, const ViewText& view);

}  // namespace tidepool
