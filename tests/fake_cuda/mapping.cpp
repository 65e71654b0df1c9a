// The fake's memory that is mapped page by page. It takes up device memory, but its addresses have no bytes. The
// fake refuses wrong calls, as the driver does, and also some right calls that Tidepool does not make.
#include <algorithm>
#include <cstdint>
#include <map>

#include "validator/cuda/driver.hpp"

namespace tidepool::cuda {

extern "C" {
Status cuMemAlloc_v2(Address* address, std::size_t size);
Status cuMemFree_v2(Address address);
}  // extern "C"

namespace {

constexpr Status kInvalid = 1;
constexpr std::size_t kGranularity = std::size_t{2} << 20;

struct Mapping {
  std::size_t size = 0;
  PhysicalMemory memory = 0;
  bool accessible = false;
};

struct Space {
  Address next = Address{1} << 40;
  std::map<Address, std::size_t> reserved;
  std::map<PhysicalMemory, std::size_t> memory;  ///< not released yet
  std::map<Address, Mapping> mapped;
};

Space& space() {
  static Space only;
  return only;
}

bool whole_pages(std::size_t size) { return size > 0 && size % kGranularity == 0; }

/// Whether memory is mapped anywhere in [first, first + size).
bool shows(Address first, std::size_t size) {
  return std::any_of(space().mapped.begin(), space().mapped.end(), [&](const auto& each) {
    return each.first < first + size && first < each.first + each.second.size;
  });
}

bool is_reserved(Address first, std::size_t size) {
  return std::any_of(space().reserved.begin(), space().reserved.end(),
                     [&](const auto& each) { return each.first <= first && first + size <= each.first + each.second; });
}

/// Frees memory that has been released and is mapped nowhere.
Status free_if_unused(PhysicalMemory memory) {
  const bool shown = std::any_of(space().mapped.begin(), space().mapped.end(),
                                 [&](const auto& each) { return each.second.memory == memory; });
  return shown || space().memory.contains(memory) ? kSuccess : cuMemFree_v2(memory);
}

}  // namespace

extern "C" {

Status cuMemAddressReserve(Address* address, std::size_t size, std::size_t, Address, unsigned long long) {
  if (!whole_pages(size)) return kInvalid;
  space().reserved[*address = space().next] = size;
  space().next += size;
  return kSuccess;
}

Status cuMemAddressFree(Address address, std::size_t size) {
  const auto found = space().reserved.find(address);
  if (found == space().reserved.end() || found->second != size || shows(address, size)) return kInvalid;
  space().reserved.erase(found);
  return kSuccess;
}

Status cuMemCreate(PhysicalMemory* memory, std::size_t size, const MemoryProperties* properties, unsigned long long) {
  if (!whole_pages(size) || properties->type != kPinned || properties->location.type != kOnDevice) return kInvalid;
  const Status status = cuMemAlloc_v2(memory, size);
  if (status == kSuccess) space().memory[*memory] = size;
  return status;
}

Status cuMemRelease(PhysicalMemory memory) {
  return space().memory.erase(memory) == 1 ? free_if_unused(memory) : kInvalid;
}

Status cuMemMap(Address address, std::size_t size, std::size_t offset, PhysicalMemory memory, unsigned long long) {
  const auto found = space().memory.find(memory);
  const bool fits = found != space().memory.end() && offset == 0 && size == found->second;
  if (!fits || !is_reserved(address, size) || shows(address, size)) return kInvalid;
  space().mapped[address] = {size, memory};
  return kSuccess;
}

Status cuMemSetAccess(Address address, std::size_t size, const MemoryAccess* access, std::size_t count) {
  const auto found = space().mapped.find(address);
  if (found == space().mapped.end() || found->second.size != size || count != 1) return kInvalid;
  found->second.accessible = access->flags == kReadWrite;
  return kSuccess;
}

/// Also refuses to unmap memory that was never made accessible: such a mapping is useless.
Status cuMemUnmap(Address address, std::size_t size) {
  const auto found = space().mapped.find(address);
  if (found == space().mapped.end() || found->second.size != size || !found->second.accessible) return kInvalid;
  const PhysicalMemory memory = found->second.memory;
  space().mapped.erase(found);
  return free_if_unused(memory);
}

}  // extern "C"

}  // namespace tidepool::cuda
