#include "tracer/dry/device/host_memory.hpp"

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <utility>

namespace tidepool::dry {

void* PinnedMemory::allocate(std::size_t bytes) {
  constexpr std::size_t kPage = 4096;
  void* const pointer = std::aligned_alloc(kPage, (bytes / kPage + 1) * kPage);
  if (pointer != nullptr) add(pointer, bytes);
  return pointer;
}

bool PinnedMemory::free(void* pointer) {
  if (!remove(pointer)) return false;
  std::free(pointer);
  return true;
}

void PinnedMemory::add(void* pointer, std::size_t bytes) {
  const std::lock_guard lock{mutex_};
  std::size_t& held = ranges_[reinterpret_cast<std::uintptr_t>(pointer)];
  bytes_ += bytes - std::exchange(held, bytes);
  most_ = std::max(most_, bytes_);
}

bool PinnedMemory::remove(void* pointer) {
  const std::lock_guard lock{mutex_};
  const auto found = ranges_.find(reinterpret_cast<std::uintptr_t>(pointer));
  if (found == ranges_.end()) return false;
  bytes_ -= found->second;
  ranges_.erase(found);
  return true;
}

bool PinnedMemory::holds(const void* pointer) const {
  const auto address = reinterpret_cast<std::uintptr_t>(pointer);
  const std::lock_guard lock{mutex_};
  const auto after = ranges_.upper_bound(address);
  return after != ranges_.begin() && address - std::prev(after)->first < std::prev(after)->second;
}

std::uint64_t PinnedMemory::most() const {
  const std::lock_guard lock{mutex_};
  return most_;
}

PinnedMemory& pinned_memory() {
  static PinnedMemory* const memory = new PinnedMemory;  // never destroyed, like the dry device itself
  return *memory;
}

}  // namespace tidepool::dry
