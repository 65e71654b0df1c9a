#include "tracer/cupti/buffer_pool.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>

namespace tidepool::cupti {

BufferPool::BufferPool(std::size_t bytes, std::size_t ready, std::size_t most) : bytes_{bytes}, most_{most} {
  all_.reserve(most);
  free_.reserve(most);
  while (all_.size() < std::min(ready, most)) {
    std::uint8_t* const buffer = make();
    if (buffer == nullptr) return;
    all_.push_back(buffer);
    free_.push_back(buffer);
  }
}

BufferPool::~BufferPool() {
  for (std::uint8_t* buffer : all_) munmap(buffer, bytes_);
}

std::uint8_t* BufferPool::make() const {
  void* const pages = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  return pages == MAP_FAILED ? nullptr : static_cast<std::uint8_t*>(pages);
}

std::uint8_t* BufferPool::take() {
  const std::lock_guard lock{mutex_};
  if (free_.empty()) {
    std::uint8_t* const buffer = all_.size() < most_ ? make() : nullptr;
    if (buffer == nullptr) {
      ++refused_;
      return nullptr;
    }
    all_.push_back(buffer);
    return buffer;
  }
  std::uint8_t* const buffer = free_.back();
  free_.pop_back();
  return buffer;
}

void BufferPool::give(std::uint8_t* buffer, std::size_t used) {
  if (buffer == nullptr) return;
  std::memset(buffer, 0, std::min(used, bytes_));
  const std::lock_guard lock{mutex_};
  free_.push_back(buffer);
}

std::uint64_t BufferPool::refused() const {
  const std::lock_guard lock{mutex_};
  return refused_;
}

}  // namespace tidepool::cupti
