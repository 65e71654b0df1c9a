// Audits: logs of allocators compared with the models of these, and published schedules of recomputation replayed.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "simulator/engine/pools/caching_rules.hpp"
#include "simulator/plan.hpp"
#include "simulator/pool.hpp"
#include "traces/base/quantity.hpp"
#include "traces/import/recompute_graph.hpp"
#include "traces/import/torch_snapshot.hpp"
#include "traces/trace.hpp"

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

/// A stored schedule: its stored cost and peak, and those of its replay.
struct ReplayedSchedule {
  std::string budget;  ///< its name
  Bytes capacity;
  Nanos stored_cost, cost;
  Bytes stored_peak, peak;
  std::string refused;  ///< why it cannot be replayed: PlanError::what(); "" if it can

  bool matches() const { return refused.empty() && cost == stored_cost && peak == stored_peak; }
};

/// All runs of a schedule in order: before each op of the program, the ops that are rerun there.
std::vector<OpId> runs_of(const GraphSchedule& schedule);

/// Replays all stored schedules of a graph with the graph's memory model, each within its budget.
std::vector<ReplayedSchedule> audit_schedules(const RecomputeGraph& graph);

/// A segment that the device handed out, as logged.
struct LoggedSegment {
  Bytes address;
  double mebibytes = 0;  ///< logged with six significant digits, so the size in bytes is not exact
};

/// Reads one segment per line, "0x7062c0000 256" or "0x726e40000 8.00049": the address and the size in MiB.
/// @param path  for messages
/// @throws InputError  "list.txt:3: '0x70270000 x' is not a segment; expected an address and a size in MiB, as in
///                     0x7062c0000 256"
std::vector<LoggedSegment> parse_segments(const std::string& path, std::string_view text);

/// Replays the alloc and free steps of a trace with recorded addresses through CnMem and compares every address, up to
/// the first difference.
/// @param initial   size of CnMem's first segment
/// @param segments  the device's segments, in order. If empty, they are inferred: the first segment begins at the first
///                  address of the trace, each later segment at the block for which CnMem requests the segment
/// @throws InputError  for a trace without addresses
AuditReport audit_cnmem(const Trace& trace, Bytes initial, std::span<const LoggedSegment> segments);

/// Replays the events of every device through CachingAllocator, beginning with the state that the snapshot implies. The
/// addresses of segments and the refusals of the device are inputs from the events. The rest is predicted: the address
/// of every allocation, the time and size of each request for a segment or page, the memory that is returned after a
/// refusal or by empty_cache, and the failure of each request that failed.
///
/// Where the start state is ambiguous, blocks begin without slack. If a slack within the bounds would have avoided a
/// wrong answer, the block gets this slack and the replay starts again: at most 1,000 passes over the log, and about
/// 50 million events in all passes. If the size of expandable ranges is a guess and the model differs from the log, a
/// second replay with unlimited ranges has the same limits.
///
/// @param config  see recorded_config()
/// @throws InputError  "device 0: 1203 streams and pools; expected at most 1000"
AuditReport audit_snapshot(const TorchSnapshot& snapshot, const CachingConfig& config);

/// The settings in a snapshot; PyTorch's defaults for those that it does not contain.
CachingConfig recorded_config(const SnapshotSettings& settings);

}  // namespace tidepool
