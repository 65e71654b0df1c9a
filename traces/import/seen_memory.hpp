// The memory of a GPU timeline as its ops see it: live bytes, and the blocks that each op reads and writes.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <tuple>
#include <vector>

#include "traces/import/gpu_timeline.hpp"
#include "traces/import/updates.hpp"

namespace tidepool {

class SeenMemory {
 public:
  explicit SeenMemory(const GpuTimeline& timeline) : timeline_{timeline} {}

  /// An allocation or a free, in the order of the host.
  void change(const GpuMemory& event);
  /// The next op, in the order of the host.
  void run(const GpuOp& op);

  /// By op: bytes of device memory that are live when it is launched.
  const std::vector<std::int64_t>& live_bytes() const { return live_bytes_; }
  /// Uses of live blocks, in the order of ops.
  const std::vector<BlockUse>& uses() const { return uses_; }
  /// By block, in the order of allocation: its size.
  const std::vector<std::int64_t>& block_bytes() const { return block_bytes_; }

 private:
  using Place = std::tuple<std::int64_t, std::uint16_t, std::int64_t>;  // process, device, address

  void add(const GpuOp& op, const GpuUses& uses);

  const GpuTimeline& timeline_;
  std::map<Place, std::uint32_t> live_;  // indices of the live blocks
  std::int64_t live_now_ = 0;
  std::vector<std::int64_t> live_bytes_, block_bytes_;
  std::vector<BlockUse> uses_;
};

}  // namespace tidepool
