// Result of comparing an allocator's log with its model.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "traces/quantity.hpp"

namespace tidepool {

/// A block that was in use when the log begins and whose size it does not say.
struct AmbiguousBlock {
  std::int64_t address = 0;
  Bytes size;        ///< the least that it may have
  Bytes most_slack;  ///< what it may have more
  bool operator==(const AmbiguousBlock&) const = default;
};

/// One device's log against the model, event by event.
struct DeviceAudit {
  int device = 0;
  std::int64_t allocations = 0;          ///< in the log
  std::int64_t matched = 0;              ///< of which the model gives the recorded address
  std::int64_t segment_allocations = 0;  ///< segments asked of the device, and pages mapped
  std::int64_t segment_matched = 0;      ///< of which the model asks for just then and of that size
  std::int64_t inferred_segments = 0;  ///< that the log does not list; their addresses are those of their first blocks
  std::int64_t segment_releases = 0;   ///< segments given back, and pages unmapped
  std::int64_t releases_matched = 0;   ///< of which the model gives back just then
  std::int64_t out_of_memory = 0;      ///< requests that the log says failed
  std::int64_t out_of_memory_matched = 0;
  std::optional<std::string> first_mismatch;  ///< where, what the log says and what the model says
  std::string start_state = "determined";     ///< whether the log says what was in use when it begins
  std::vector<AmbiguousBlock> ambiguous;      ///< where it does not

  /// Events of the log that the model has an answer to.
  std::int64_t compared() const { return allocations + segment_allocations + segment_releases + out_of_memory; }
  /// Everything in the log is as the model says.
  bool exact() const {
    return !first_mismatch && allocations == matched && segment_allocations == segment_matched &&
           segment_releases == releases_matched && out_of_memory == out_of_memory_matched;
  }
};

/// One entry for each device that has a log.
struct AuditReport {
  std::vector<DeviceAudit> devices;

  /// The sums; the first mismatch and the start state of the first device that has something to say.
  DeviceAudit total() const;
  bool exact() const { return total().exact(); }
};

}  // namespace tidepool
