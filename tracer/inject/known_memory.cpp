#include "tracer/inject/known_memory.hpp"

#include <array>
#include <mutex>

namespace tidepool::inject {
namespace {

constexpr std::uint64_t kPageBits = 12;
constexpr std::size_t kMostPages = 1U << 20;  // integers that look like addresses could otherwise fill the memory

}  // namespace

void KnownMemory::add(std::uint64_t begin, std::uint64_t bytes) {
  const std::unique_lock lock{mutex_};
  ranges_.add(begin, bytes);
}

void KnownMemory::remove(std::uint64_t begin) {
  const std::unique_lock lock{mutex_};
  ranges_.remove(begin);
}

void KnownMemory::forget() {
  const std::unique_lock lock{mutex_};
  ranges_ = {};
  nothing_.clear();
}

void KnownMemory::remove_within(std::uint64_t begin, std::uint64_t bytes) {
  const std::unique_lock lock{mutex_};
  ranges_.remove_within(begin, bytes);
}

bool KnownMemory::holds(std::uint64_t address) const {
  const std::shared_lock lock{mutex_};
  return ranges_.find(address) != nullptr;
}

void KnownMemory::add_tensor_map(const void* descriptor, std::uint64_t address) {
  const std::unique_lock lock{mutex_};
  maps_.add(static_cast<const std::byte*>(descriptor), address);
}

void KnownMemory::scan(cupti::ParameterScan& scan, const cupti::KernelLayout& layout, void* const* values,
                       const void* packed, std::size_t packed_bytes) const {
  const std::shared_lock lock{mutex_};
  if (values != nullptr)
    scan.scan(layout, values, ranges_, maps_);
  else
    scan.scan_packed(layout, {static_cast<const std::byte*>(packed), packed == nullptr ? 0 : packed_bytes}, ranges_,
                     maps_);
}

KnownMemory::Answer KnownMemory::resolve(const DriverLibrary& driver, std::uint64_t address) {
  {
    const std::shared_lock lock{mutex_};
    if (const cupti::LiveRange* range = ranges_.find(address)) return {.found = true, .range = *range};
    if (nothing_.contains(address >> kPageBits)) return {};
  }
  CUdeviceptr begin = 0;
  std::size_t bytes = 0;
  CUmemorytype type{};
  int device = -1;
  std::array attributes{CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, CU_POINTER_ATTRIBUTE_RANGE_SIZE,
                        CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL};
  std::array<void*, 4> values{&begin, &bytes, &type, &device};
  const CUresult result = driver.pointer_attributes(attributes.size(), attributes.data(), values.data(), address);
  const bool found = result == CUDA_SUCCESS && bytes != 0 && begin <= address && address - begin < bytes;
  const std::unique_lock lock{mutex_};
  if (found) {
    ranges_.add(begin, bytes, true);
    return {true, true, {begin, begin + bytes, true}, type, static_cast<std::uint32_t>(device)};
  }
  if (nothing_.size() >= kMostPages) nothing_.clear();
  nothing_.insert(address >> kPageBits);
  return {};
}

}  // namespace tidepool::inject
