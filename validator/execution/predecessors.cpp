#include "validator/execution/predecessors.hpp"

#include <algorithm>

namespace tidepool {
namespace {

/// By lane: the latest step, counted from 1; 0 for none.
using Front = std::vector<std::uint32_t>;

}  // namespace

Predecessors::Predecessors(const DeviceProgram& program) {
  std::vector<Front> streams(program.lanes.count(), Front(program.lanes.count()));
  std::vector<Front> events(program.events, Front(program.lanes.count()));
  std::vector<std::vector<std::uint32_t>> found(program.steps.size());
  for (const DeviceCommand& command : program.commands) {
    Front& front = streams[command.stream];
    switch (command.kind) {
      case DeviceCommandKind::kWait:
        for (std::size_t lane = 0; lane < front.size(); ++lane)
          front[lane] = std::max(front[lane], events[command.number][lane]);
        break;
      case DeviceCommandKind::kRecord:
        events[command.number] = front;
        break;
      case DeviceCommandKind::kStep:
        for (const std::uint32_t step : front)
          if (step != 0) found[command.number].push_back(step - 1);
        std::fill(front.begin(), front.end(), 0U);
        front[command.stream] = command.number + 1;
        break;
    }
  }
  for (const std::vector<std::uint32_t>& steps : found) {
    first_.push_back(static_cast<std::uint32_t>(steps_.size()));
    steps_.insert(steps_.end(), steps.begin(), steps.end());
  }
  first_.push_back(static_cast<std::uint32_t>(steps_.size()));
}

}  // namespace tidepool
