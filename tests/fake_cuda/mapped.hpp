// Addresses of the fake of libcuda.so.1 to which memory is mapped page by page.
#pragma once

#include <algorithm>
#include <map>
#include <mutex>

#include "tests/fake_cuda/cuda_state.hpp"

namespace fake {

/// Reserved addresses, memory without addresses, and the mappings between them.
class Mapped {
 public:
  CUresult reserve(CUdeviceptr& address, std::size_t bytes) {
    const std::lock_guard lock{mutex};
    if (bytes == 0) return CUDA_ERROR_INVALID_VALUE;
    reserved_[address = next_] = bytes;
    next_ += (bytes + kPage - 1) / kPage * kPage;
    return CUDA_SUCCESS;
  }
  CUresult free(CUdeviceptr address, std::size_t bytes) {
    const std::lock_guard lock{mutex};
    const auto found = reserved_.find(address);
    if (found == reserved_.end() || found->second != bytes || shows(address, bytes)) return CUDA_ERROR_INVALID_VALUE;
    reserved_.erase(found);
    return CUDA_SUCCESS;
  }
  CUresult create(CUmemGenericAllocationHandle& handle, std::size_t bytes) {
    const std::lock_guard lock{mutex};
    created_[handle = ++last_] = bytes;
    return CUDA_SUCCESS;
  }
  /// The memory stays where it is mapped.
  CUresult release(CUmemGenericAllocationHandle handle) {
    const std::lock_guard lock{mutex};
    return created_.erase(handle) == 1 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  }
  CUresult map(CUdeviceptr address, std::size_t bytes, std::size_t offset, CUmemGenericAllocationHandle handle) {
    const std::lock_guard lock{mutex};
    const auto found = created_.find(handle);
    const bool fits = found != created_.end() && offset <= found->second && bytes <= found->second - offset;
    if (!fits || !is_reserved(address, bytes) || shows(address, bytes)) return CUDA_ERROR_INVALID_VALUE;
    memory[address] = mapped_[address] = bytes;
    return CUDA_SUCCESS;
  }
  /// Unmaps all mappings in the range. Refused if there is none, or if a mapping reaches beyond it.
  CUresult unmap(CUdeviceptr address, std::size_t bytes) {
    const std::lock_guard lock{mutex};
    const auto inside = [&](const auto& each) {
      return address <= each.first && each.first + each.second <= address + bytes;
    };
    if (!shows(address, bytes) || std::any_of(mapped_.begin(), mapped_.end(), [&](const auto& each) {
          return overlaps(each, address, bytes) && !inside(each);
        }))
      return CUDA_ERROR_INVALID_VALUE;
    std::erase_if(mapped_, [&](const auto& each) { return inside(each) && memory.erase(each.first) == 1; });
    return CUDA_SUCCESS;
  }

 private:
  static constexpr std::size_t kPage = std::size_t{2} << 20;
  using Ranges = std::map<CUdeviceptr, std::size_t>;

  static bool overlaps(const Ranges::value_type& range, CUdeviceptr address, std::size_t bytes) {
    return range.first < address + bytes && address < range.first + range.second;
  }
  bool shows(CUdeviceptr address, std::size_t bytes) const {
    return std::any_of(mapped_.begin(), mapped_.end(),
                       [&](const auto& each) { return overlaps(each, address, bytes); });
  }
  bool is_reserved(CUdeviceptr address, std::size_t bytes) const {
    return std::any_of(reserved_.begin(), reserved_.end(), [&](const auto& each) {
      return each.first <= address && address + bytes <= each.first + each.second;
    });
  }

  CUdeviceptr next_ = 0x7f6000000000;
  CUmemGenericAllocationHandle last_ = 1000;
  Ranges reserved_, mapped_;
  std::map<CUmemGenericAllocationHandle, std::size_t> created_;
};

inline Mapped& mapped() {
  static auto& only = *new Mapped;
  return only;
}

}  // namespace fake
