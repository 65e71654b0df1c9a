// Buffers for activity records: made and touched before the job needs them, and used again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

namespace tidepool::cupti {

/// Buffers of one size. take() and give() may be called by any thread.
class BufferPool {
 public:
  /// @param ready  buffers whose pages are there from the start: a first touch in the middle of a launch costs
  /// milliseconds
  /// @param most   buffers there may ever be; more are refused, which drops records instead of eating the job's memory
  BufferPool(std::size_t bytes, std::size_t ready, std::size_t most);
  ~BufferPool();
  BufferPool(const BufferPool&) = delete;
  BufferPool& operator=(const BufferPool&) = delete;

  /// @return a buffer whose bytes are zero, or nullptr when `most` are taken or there is no memory
  std::uint8_t* take();
  /// Takes a buffer back, of which the first `used` bytes were written.
  void give(std::uint8_t* buffer, std::size_t used);
  std::size_t bytes() const { return bytes_; }
  std::uint64_t refused() const;

 private:
  std::uint8_t* make() const;

  std::size_t bytes_, most_;
  mutable std::mutex mutex_;
  std::vector<std::uint8_t*> free_, all_;
  std::uint64_t refused_ = 0;
};

}  // namespace tidepool::cupti
