#include "traces/import/kineto_lifetimes.hpp"

#include <algorithm>
#include <unordered_map>

namespace tidepool {
namespace {

using Life = KinetoLifetimes::Life;

/// One device's memory, event by event.
class DeviceMemory {
 public:
  void apply(const KinetoMemory& memory, KinetoLifetimes& out, KinetoLifetimes::Event& event) {
    const std::int64_t before = memory.total - memory.bytes;
    if (memory.total >= 0) {
      if (!total_) older_ = before;
      unexplained_ += total_.value_or(before) != before;
      total_ = memory.total;
    }
    const std::int64_t bytes = memory.bytes < 0 ? -memory.bytes : memory.bytes;
    std::vector<std::size_t>& live = memory.address >= 0 ? at_[memory.address] : sized_[bytes];
    if (memory.bytes < 0) {
      if (live.empty()) {
        event.ends = out.lives.size();
        out.lives.push_back({memory.device, memory.address, bytes, true});
        if (older_) *older_ -= bytes;
        return;
      }
      event.ends = live.back();
      live.pop_back();
      if (out.lives[event.ends].bytes != bytes) mismatches_ += 2;  // lost: a free and an allocation at this address
      return;
    }
    if (memory.address >= 0 && !live.empty()) {
      event.ends = live.back();
      live.pop_back();
      ++mismatches_;  // lost: the free of the buffer that was there
    }
    event.begins = out.lives.size();
    live.push_back(out.lives.size());
    out.lives.push_back({memory.device, memory.address, bytes, false});
  }

  /// Bytes from before the recording that were never freed; negative if more was freed than there was.
  std::int64_t kept() const { return older_.value_or(0); }
  /// The least number of lost events: one loss may show both in the totals and in the addresses.
  std::int64_t lost() const { return std::max(unexplained_, mismatches_); }

 private:
  std::optional<std::int64_t> older_, total_;
  std::int64_t unexplained_ = 0, mismatches_ = 0;
  std::unordered_map<std::int64_t, std::vector<std::size_t>> at_, sized_;  // live buffers by address or by size
};

}  // namespace

KinetoLifetimes find_lifetimes(const std::vector<KinetoMemory>& memory, std::optional<std::int64_t> only) {
  KinetoLifetimes out;
  for (std::size_t i = 0; i < memory.size(); ++i) {
    if (only && memory[i].device != *only) continue;
    out.events.push_back({i});
    out.by_size |= memory[i].address < 0;
  }
  std::stable_sort(out.events.begin(), out.events.end(),
                   [&](const auto& a, const auto& b) { return memory[a.memory].time < memory[b.memory].time; });
  std::map<std::int64_t, DeviceMemory> devices;
  for (KinetoLifetimes::Event& event : out.events)
    devices[memory[event.memory].device].apply(memory[event.memory], out, event);
  for (const auto& [device, state] : devices) {
    out.lost += state.lost();
    if (state.kept() > 0) out.kept[device] = state.kept();
    if (state.kept() < 0 && state.lost() == 0) ++out.lost;
  }
  return out;
}

}  // namespace tidepool
