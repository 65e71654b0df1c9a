// A sign of life of commands that work for long.
#pragma once

#include <string>
#include <thread>

namespace tidepool {

/// While an object lives, says on a terminal after 2 s that the command works, and then every 30 s for how long it has.
/// On another stderr, it says nothing.
class StillWorking {
 public:
  explicit StillWorking(const std::string& command);

 private:
  std::jthread thread_;
};

}  // namespace tidepool
