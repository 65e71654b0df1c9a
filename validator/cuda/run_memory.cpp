#include "validator/cuda/run_memory.hpp"

namespace tidepool::cuda {

Address RunMemory::arena(Bytes size) {
  if (!arena_ || arena_size_ < size) {
    arena_.reset();  // otherwise, old and new memory would exist at once
    arena_.emplace(allocate(gpu_, size, "the arena"));
    arena_size_ = size;
  }
  return arena_->get();
}

void* RunMemory::pinned(Bytes size) {
  if (!pinned_ || pinned_size_ < size) {
    pinned_.reset();
    pinned_.emplace(allocate_pinned(gpu_, size));
    pinned_size_ = size;
  }
  return pinned_->get();
}

}  // namespace tidepool::cuda
