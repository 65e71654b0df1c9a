// Comparison of the events of a PyTorch snapshot with the model of its allocator.
#pragma once

#include "simulator/engine/pools/caching_rules.hpp"
#include "simulator/studies/audit/report.hpp"
#include "traces/import/torch_snapshot.hpp"

namespace tidepool {

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
