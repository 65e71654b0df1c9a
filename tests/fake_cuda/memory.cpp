#include "tests/fake_cuda/memory.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <new>

#include "tests/fake_cuda/world.hpp"

namespace tidepool::cuda {
namespace {

constexpr std::uint64_t kAddresses = std::uint64_t{1} << 36, kAlignment = 512;
constexpr int kFresh = 0xa5;                                    // unwritten memory is not zero
constexpr std::uint64_t kMostFresh = std::uint64_t{1} << 20;    // more bytes are not filled: it would take time
constexpr std::uint64_t kMostGuarded = std::uint64_t{1} << 26;  // protecting more pages takes time, too

using Ranges = std::map<std::uint64_t, std::uint64_t>;  ///< first address to size

struct Space {
  std::uint64_t base = 0;
  std::uint64_t end = 0;        ///< highest end of an allocation since the device had none, in whole pages
  std::uint64_t unguarded = 0;  ///< bytes that the host can reach, since they are too many to protect
  Ranges device, pinned;
  std::uint64_t used = 0, used_pinned = 0;
  int open = 0;
};

Space& space() {
  static Space* const made = [] {
    void* const base = mmap(nullptr, kAddresses, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED) throw std::bad_alloc{};
    auto* const space = new Space;
    space->base = space->end = reinterpret_cast<std::uint64_t>(base);
    return space;
  }();
  return *made;
}

void protect(int protection) {
  Space& s = space();
  const std::uint64_t size = s.end - s.base;
  if (size == 0 || size == s.unguarded) return;
  const bool guarded = size <= kMostGuarded;
  mprotect(reinterpret_cast<void*>(s.base), size, guarded ? protection : PROT_READ | PROT_WRITE);
  if (!guarded) s.unguarded = size;
}

bool within(const Ranges& ranges, std::uint64_t address, std::uint64_t size) {
  const auto behind = ranges.upper_bound(address);
  if (behind == ranges.begin()) return false;
  const auto& [first, length] = *std::prev(behind);
  return address - first <= length && size <= length - (address - first);
}

/// Whether an allocation may have this size. Counts the large ones.
bool may_be_large(std::size_t size) {
  constexpr std::size_t kLarge = std::size_t{1} << 20;
  if (size < kLarge) return true;
  return world().settings.large > 0 && world().settings.large-- > 0;
}

}  // namespace

DeviceAccess::DeviceAccess() {
  if (space().open++ == 0) protect(PROT_READ | PROT_WRITE);
}
DeviceAccess::~DeviceAccess() {
  if (--space().open == 0) protect(PROT_NONE);
}

bool is_device_memory(std::uint64_t address, std::uint64_t size) { return within(space().device, address, size); }
bool is_pinned_memory(std::uint64_t address, std::uint64_t size) { return within(space().pinned, address, size); }
bool is_device_address(std::uint64_t address) { return address - space().base < kAddresses; }

extern "C" {

Status cuMemGetInfo_v2(std::size_t* free, std::size_t* total) {
  if (const Status status = ready(); status != kSuccess) return status;
  *total = world().settings.memory;
  *free = *total - space().used;
  return kSuccess;
}

Status cuMemAlloc_v2(Address* address, std::size_t size) {
  if (const Status status = ready(); status != kSuccess) return status;
  Space& s = space();
  if (size == 0) return kInvalid;
  if (s.used + size > world().settings.memory || !may_be_large(size)) return kErrorOutOfMemory;
  std::uint64_t at = s.base;  // first fit, with a gap behind each allocation
  for (const auto& [first, length] : s.device) {
    if (first - at >= size + kAlignment) break;
    at = (first + length + 2 * kAlignment - 1) / kAlignment * kAlignment;
  }
  if (at + size + kAlignment > s.base + kAddresses) return kErrorOutOfMemory;
  s.device[at] = size;
  s.used += size;
  constexpr std::uint64_t kPage = 4096;
  s.end = std::max(s.end, (at + size + kPage - 1) / kPage * kPage);
  const DeviceAccess access;
  std::memset(reinterpret_cast<void*>(at), kFresh, std::min(size, kMostFresh));
  *address = at;
  return kSuccess;
}

/// Waits for all work, as NVIDIA's function does.
Status cuMemFree_v2(Address address) {
  if (const Status status = ready(); status != kSuccess) return status;
  const auto found = space().device.find(address);
  if (found == space().device.end()) return kInvalid;
  go_on_to_the_end();
  constexpr std::uint64_t kPage = 4096;
  const std::uint64_t first = (found->first + kPage - 1) / kPage * kPage;
  const std::uint64_t end = (found->first + found->second) / kPage * kPage;
  if (end > first) madvise(reinterpret_cast<void*>(first), end - first, MADV_DONTNEED);
  Space& s = space();
  s.used -= found->second;
  s.device.erase(found);
  if (s.device.empty()) {
    mprotect(reinterpret_cast<void*>(s.base), s.end - s.base, PROT_NONE);
    s.end = s.base;
    s.unguarded = 0;
  }
  return kSuccess;
}

Status cuMemHostAlloc(void** memory, std::size_t size, unsigned) {
  if (const Status status = ready(); status != kSuccess) return status;
  Space& s = space();
  if (size == 0) return kInvalid;
  if (s.used_pinned + size > world().settings.pinned || !may_be_large(size)) return kErrorOutOfMemory;
  *memory = std::calloc(size, 1);
  if (*memory == nullptr) return kErrorOutOfMemory;
  s.used_pinned += size;
  s.pinned[reinterpret_cast<std::uint64_t>(*memory)] = size;
  return kSuccess;
}

Status cuMemFreeHost(void* memory) {
  if (const Status status = ready(); status != kSuccess) return status;
  const auto found = space().pinned.find(reinterpret_cast<std::uint64_t>(memory));
  if (found == space().pinned.end()) return kInvalid;
  go_on_to_the_end();
  space().used_pinned -= found->second;
  space().pinned.erase(found);
  std::free(memory);
  return kSuccess;
}

}  // extern "C"

}  // namespace tidepool::cuda
