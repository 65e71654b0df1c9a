// PyTorch's allocator snapshot (torch.cuda.memory._dump_snapshot) as typed data: segments, blocks and recorded events.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "traces/base/quantity.hpp"
#include "traces/trace.hpp"

namespace tidepool {

/// The memory pool of a captured graph or a user's MemPool; {0, 0} is the default pool.
struct SnapshotPool {
  std::int64_t owner = 0;
  std::int64_t number = 0;
  bool operator==(const SnapshotPool&) const = default;
};

enum class BlockState : std::uint8_t {
  kActive,       ///< active_allocated
  kPendingFree,  ///< active_pending_free or active_awaiting_free: freed by the program, waiting for other streams
  kInactive,
};

/// A piece of a segment, as the allocator divided it.
struct SnapshotBlock {
  std::int64_t address = 0;  ///< summed up from the segment's address where the file (2023) does not give it
  Bytes size;                ///< as rounded or split by the allocator
  Bytes requested{-1};       ///< as the program asked; -1 = not recorded
  BlockState state = BlockState::kInactive;
  std::uint32_t line = 0;  ///< in TorchSnapshot::lines: of the code that allocated it
};

/// A segment that the allocator got from the device, or one expandable range with its mapped pages.
struct SnapshotSegment {
  int device = 0;
  std::int64_t address = 0;
  Bytes size;
  std::int64_t stream = 0;
  bool small = false;  ///< of the pool for requests up to 1 MiB
  bool expandable = false;
  SnapshotPool pool;
  std::vector<SnapshotBlock> blocks;  ///< in address order; without gaps between them unless `expandable`
};

enum class SnapshotAction : std::uint8_t {
  kAlloc,
  kFreeRequested,
  kFreeCompleted,
  kSegmentAlloc,
  kSegmentFree,
  kSegmentMap,
  kSegmentUnmap,
  kSnapshot,
  kOom,
  kOther,  ///< user_defined, workspace_snapshot, and actions of later versions, which `unknown_actions` counts
};

struct SnapshotEvent {
  SnapshotAction action = SnapshotAction::kOther;
  std::uint32_t line = 0;    ///< in TorchSnapshot::lines: of the code that asked; for kAlloc and kOom
  std::int64_t address = 0;  ///< kOom: bytes that were free on the device
  Bytes size;                ///< kAlloc, kFree*: as requested, not as rounded; kSnapshot: bytes allocated
  std::int64_t stream = 0;
  std::int64_t time_us = -1;         ///< since 1970; -1 = not recorded (before 2.2)
  std::optional<SnapshotPool> pool;  ///< where the file says it
};

/// The allocator's settings, with PyTorch's defaults where the file has none.
struct SnapshotSettings {
  bool recorded = false;     ///< the file has allocator_settings
  std::string conf;          ///< PYTORCH_CUDA_ALLOC_CONF
  Bytes max_split_size{-1};  ///< -1 = unlimited
  double garbage_collection_threshold = 0;
  bool expandable_segments = false;
  std::array<int, 16> roundup_power2_divisions{};  ///< [i] is for sizes from 2^i MiB; 0 = off
  std::optional<Bytes> large_segment_size;         ///< where the file says it (2026)
};

struct TorchSnapshot {
  std::vector<SnapshotSegment> segments;
  std::vector<std::vector<SnapshotEvent>> device_traces;  ///< by device, oldest event first
  SnapshotSettings settings;
  /// Lines of the user's code, as in model.py:88; the first is "", for stacks without one.
  std::vector<std::string> lines{""};
  std::int64_t unknown_actions = 0;
};

/// Reads a pickled snapshot of any schema since 2023. Nothing in it is executed.
/// @param bytes  the pickle, decompressed
/// @throws InputError  without file name, as in "device 0, trace entry 17: no 'addr'; expected a whole number" or
///                     "byte 812: opcode REDUCE ('R') needs more than plain values; a snapshot holds only these"
TorchSnapshot parse_torch_snapshot(std::string_view bytes);

/// The selection of a snapshot's content for to_trace.
struct SnapshotSelection {
  std::optional<std::size_t> only = {};  ///< the one device to look at
  bool try_failed = false;               ///< an out-of-memory request counts as an allocation that is freed at once
};

/// The events of the history that a trace was made from: those of the selected devices, in the order of their times.
struct SnapshotHistory {
  std::size_t events = 0;
  std::vector<std::size_t> of_record;  ///< by record of the trace: the number of its event, from 0
  std::vector<std::int64_t> time_us;   ///< by event; -1 = not recorded
};

/// The lifetimes in a snapshot: a buffer per allocation of every device, with recorded address and requested size; no
/// ops. Blocks that are older than the recorded events are `born_before`.
/// @param history  filled in, unless it is null
/// @throws InputError  "no device 2; expected 0 to 1"
Trace to_trace(const TorchSnapshot& snapshot, const SnapshotSelection& selection = {},
               SnapshotHistory* history = nullptr);

/// A device's memory, as a snapshot records it.
struct RecordedMemory {
  std::size_t device = 0;
  Bytes most_reserved;                  ///< since the first recorded event; not less than was allocated
  std::optional<Bytes> capacity;        ///< bytes that the program could use when a request first failed
  std::optional<Bytes> failed_request;  ///< size of that request
  bool lacks_segments = false;          ///< more was allocated than its segments have: `most_reserved` is a lower bound
  bool operator==(const RecordedMemory&) const = default;
};

/// The devices on which the snapshot has memory, or events that allocate or free some.
std::vector<std::size_t> devices_with_memory(const TorchSnapshot& snapshot);

/// The memory of one of devices_with_memory(): the one on which a request failed, else the one with the most events
/// that allocate or free, else the one with the most reserved bytes.
RecordedMemory recorded_memory(const TorchSnapshot& snapshot);
RecordedMemory recorded_memory(const TorchSnapshot& snapshot, std::size_t device);

/// The lifetimes of one device, with requests that failed: see to_trace().
Trace device_trace(const TorchSnapshot& snapshot, std::size_t device, SnapshotHistory* history = nullptr);

}  // namespace tidepool
