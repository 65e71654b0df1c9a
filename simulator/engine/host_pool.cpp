#include "simulator/engine/host_pool.hpp"

#include <algorithm>
#include <bit>

namespace tidepool {
namespace {

std::size_t power_of(Bytes block) {
  return static_cast<std::size_t>(std::bit_width(static_cast<std::uint64_t>(block.count())));
}

}  // namespace

Bytes HostPool::block(const HostMemory& memory, Bytes size) {
  constexpr std::int64_t kMost = std::int64_t{1} << 62;
  if (!memory.powers_of_two || size <= Bytes{}) return size;
  if (size.count() >= kMost) return Bytes{kMost};
  return Bytes{static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(size.count())))};
}

Nanos HostPool::take(Bytes size) {
  const Bytes taken = block(memory_, size);
  in_use_ += taken;
  Bytes to_pin = std::max(Bytes{}, in_use_ - pinned_);
  if (memory_.powers_of_two) {
    std::int64_t& idle = idle_[power_of(taken)];
    to_pin = idle > 0 ? Bytes{} : taken;
    if (idle > 0) --idle;
  }
  if (to_pin == Bytes{}) return {};
  if (to_pin > memory_.capacity - pinned_) {
    pinned_ = in_use_ - to_pin;
    idle_.fill(0);
  }
  pinned_ += to_pin;
  peak_ = std::max(peak_, pinned_);
  return memory_.pin_latency +
         (memory_.pin_rate == BytesPerSecond{} ? Nanos{} : transfer_time(to_pin, memory_.pin_rate));
}

void HostPool::record(std::vector<std::int64_t>& state) const {
  const bool pinning_takes_time = memory_.pin_latency > Nanos{} || memory_.pin_rate > BytesPerSecond{};
  if (!pinning_takes_time) return;  // the set of pinned blocks does not matter then
  state.push_back(pinned_.count());
  state.insert(state.end(), idle_.begin(), idle_.end());
}

void HostPool::give_back(Bytes size) {
  const Bytes taken = block(memory_, size);
  in_use_ -= taken;
  if (memory_.powers_of_two && taken > Bytes{}) ++idle_[power_of(taken)];
}

}  // namespace tidepool
