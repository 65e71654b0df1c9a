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
  std::vector<Bytes> segments;  ///< addresses of the segments that the device gave to cnmem, if they are known
  bool json = false;
};

/// @return the exit code: 1 if a planned layout did not serve the loop that it was planned for
int pack_periodic(const PeriodicArguments& arguments);

}  // namespace tidepool
