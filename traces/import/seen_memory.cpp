#include "traces/import/seen_memory.hpp"

#include <algorithm>

namespace tidepool {
namespace {

constexpr std::int64_t kMostBytes = std::int64_t{1} << 40;  // most bytes of a block; damaged files may have more
constexpr std::int64_t kMostLive = std::int64_t{1} << 60;   // most live bytes; sums of a few of these fit 64 bits

}  // namespace

void SeenMemory::change(const GpuMemory& event) {
  const Place place{event.stream.process, event.device, event.address};
  if (const auto before = live_.find(place); before != live_.end()) {
    if (event.event == BlockEvent::kExisting) return;
    live_now_ -= block_bytes_[before->second];
    live_.erase(before);
  }
  if (event.event == BlockEvent::kFree) return;
  const std::int64_t size = std::min(std::clamp(event.size, std::int64_t{0}, kMostBytes), kMostLive - live_now_);
  live_.emplace(place, static_cast<std::uint32_t>(block_bytes_.size()));
  block_bytes_.push_back(size);
  live_now_ += size;
}

void SeenMemory::run(const GpuOp& op) {
  add(op, op.uses);
  if (op.call) add(op, timeline_.calls[*op.call].uses);
  live_bytes_.push_back(live_now_);
}

void SeenMemory::add(const GpuOp& op, const GpuUses& uses) {
  for (std::size_t i = uses.first; i < uses.last; ++i) {
    const GpuUse& use = timeline_.uses[i];
    if (use.access == Access::kView) continue;
    const auto behind = live_.upper_bound({op.stream.process, op.device, use.address});
    if (behind == live_.begin()) continue;
    const auto& [place, block] = *std::prev(behind);
    const auto& [process, device, address] = place;
    if (process != op.stream.process || device != op.device || use.address - address >= block_bytes_[block]) continue;
    uses_.push_back({static_cast<std::uint32_t>(live_bytes_.size()), block, use.access, op.kind == OpKind::kCopy});
  }
}

}  // namespace tidepool
