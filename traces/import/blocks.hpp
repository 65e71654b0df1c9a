// Conversion of logged allocations and frees by address to buffers.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <utility>

#include "traces/builder.hpp"

namespace tidepool {

enum class BlockEvent : std::uint8_t {
  kAlloc,
  kFree,
  kExisting,  ///< seen in use, although its allocation is not in the log
};

/// One allocation or free in a log.
struct LoggedBlock {
  BlockEvent event = BlockEvent::kAlloc;
  std::uint32_t space = 0;  ///< equal addresses in different spaces (devices, processes) are different memory
  Buffer block = {};        ///< until a free, events name the block by its address
};

/// Converts a log's allocations and frees to the buffers of a builder. Events that the log lacks, since it begins after
/// the program or lost them, are inferred. Lost events are counted in the losses:
/// - a block whose first event is a free or kExisting is older than the log: it existed before the trace. If kExisting
///   follows a free, the allocation between them was lost (a dropped record);
/// - a free of a block that has been freed already is an unmatched free, and frees nothing;
/// - an allocation at a block that is still live means that its free was lost: that block ends here (a dropped record).
/// O(log n) per event.
class Blocks {
 public:
  /// Must be made before the first step of the trace is built.
  /// @param events  all events of the log, in order
  Blocks(TraceBuilder& builder, std::span<const LoggedBlock> events);

  /// The next event happens now.
  void step(const LoggedBlock& event);

  /// The live block in which an address is, if there is one.
  std::optional<BufferId> find(std::uint32_t space, std::int64_t address) const;

 private:
  using Place = std::pair<std::uint32_t, std::int64_t>;  // space, address
  static Place place(const LoggedBlock& event) { return {event.space, event.block.address}; }

  TraceBuilder& builder_;
  std::map<Place, BufferId> live_;
};

}  // namespace tidepool
