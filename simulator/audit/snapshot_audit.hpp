// A PyTorch snapshot's events against the model of its allocator.
#pragma once

#include "simulator/audit/report.hpp"
#include "simulator/pools/caching_rules.hpp"
#include "traces/import/torch_snapshot.hpp"

namespace tidepool {

/// Replays the events of every device through CachingAllocator, beginning with the state that the snapshot implies. The
/// device answers what the events say: the addresses of segments and the refusals are inputs, everything else is
/// predicted: the address of every allocation, when a segment or page is asked for and of what size, what is given back
/// after a refusal or by empty_cache, and that a request that failed had to fail.
///
/// Where the start state is ambiguous, blocks begin without slack; a wrong answer that a slack within the bounds would
/// have avoided sets it, and the replay starts again (at most once per ambiguous block, and 1,000 times).
///
/// @param config  see recorded_config()
/// @throws InputError  "device 0: 1203 streams and pools; expected at most 1000"
AuditReport audit_snapshot(const TorchSnapshot& snapshot, const CachingConfig& config);

/// The settings that a snapshot says, PyTorch's defaults where it does not.
CachingConfig recorded_config(const SnapshotSettings& settings);

}  // namespace tidepool
