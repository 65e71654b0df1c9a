// Result of comparing an allocator's log with its model.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "traces/base/quantity.hpp"

namespace tidepool {

/// A block that was in use at the beginning of the log and whose size the log does not determine.
struct AmbiguousBlock {
  std::int64_t address = 0;
  Bytes size;        ///< the least possible size
  Bytes most_slack;  ///< the largest possible size minus `size`
  bool operator==(const AmbiguousBlock&) const = default;
};

/// The most allocated and reserved bytes of a device during a log, as torch.cuda.max_memory_allocated() and
/// max_memory_reserved() return them. One difference: a freed block that waits for other streams counts as in use.
struct MemoryPeaks {
  Bytes allocated;  ///< size of the blocks in use, including remainders too small to be split off
  Bytes reserved;
};

/// One device's log against the model, event by event.
struct DeviceAudit {
  int device = 0;
  std::int64_t allocations = 0;          ///< in the log
  std::int64_t matched = 0;              ///< allocations for which the model gives the recorded address
  std::int64_t segment_allocations = 0;  ///< segments requested from the device, and pages mapped
  std::int64_t segment_matched = 0;      ///< requests that the model makes with the same size at the same event
  std::int64_t inferred_segments = 0;    ///< segments that the log does not list; their addresses are inferred
  std::int64_t segment_releases = 0;     ///< segments returned to the device, and pages unmapped
  std::int64_t releases_matched = 0;     ///< releases of the same memory by the model at the same event
  std::int64_t out_of_memory = 0;        ///< requests that failed according to the log
  std::int64_t out_of_memory_matched = 0;
  std::optional<std::string> first_mismatch;  ///< the event, the log's answer and the model's
  std::string start_state = "determined";     ///< StartState::text()
  std::vector<AmbiguousBlock> ambiguous;      ///< blocks of the start state whose sizes are not determined
  std::optional<MemoryPeaks> peaks;           ///< only for a snapshot's log in which every event agrees

  /// The number of compared events.
  std::int64_t compared() const { return allocations + segment_allocations + segment_releases + out_of_memory; }
  /// Whether model and log agree in every event.
  bool exact() const {
    return !first_mismatch && allocations == matched && segment_allocations == segment_matched &&
           segment_releases == releases_matched && out_of_memory == out_of_memory_matched;
  }
};

/// One entry for each device that has a log.
struct AuditReport {
  std::vector<DeviceAudit> devices;

  /// Sums over all devices, with the first mismatch and the first start state that is not "determined".
  DeviceAudit total() const;
  bool exact() const { return total().exact(); }
};

}  // namespace tidepool
