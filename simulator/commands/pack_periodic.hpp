// tidepool pack --periodic: pools and planners side by side on training loops.
#pragma once

#include <string>
#include <vector>

#include "simulator/planner.hpp"

namespace tidepool {

struct PeriodicArguments {
  std::vector<std::string> traces;
  std::vector<std::string> pools;
  PackingLimits limits;
  int iterations = 0;           ///< 0: as recorded
  std::vector<Bytes> segments;  ///< what the device handed out to cnmem, if it is known
  bool json = false;
};

/// @return the exit code: 1 if a planned layout did not serve what it was planned for
int pack_periodic(const PeriodicArguments& arguments);

}  // namespace tidepool
