// Buffers for CUPTI's activity records, allocated before the job needs them and reused.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

namespace tidepool::cupti {

/// Buffers of one size, which the pool owns until its own end. Any thread may call the functions.
class BufferPool {
 public:
  /// @param bytes  size of each buffer
  /// @param ready  number of buffers to make now and to touch: a first touch during a launch would take milliseconds
  /// @param most   the largest number of buffers. More are refused, so that records are dropped before the job lacks
  ///               memory
  BufferPool(std::size_t bytes, std::size_t ready, std::size_t most);
  ~BufferPool();
  BufferPool(const BufferPool&) = delete;
  BufferPool& operator=(const BufferPool&) = delete;

  /// @return a buffer whose bytes are zero; nullptr if `most` buffers are in use or the memory is exhausted
  std::uint8_t* take();
  /// Returns a buffer, of which the first `used` bytes were written, to the pool.
  void give(std::uint8_t* buffer, std::size_t used);
  std::size_t bytes() const { return bytes_; }
  /// The number of calls of take() that returned nullptr.
  std::uint64_t refused() const;

 private:
  std::uint8_t* make() const;

  std::size_t bytes_, most_;
  mutable std::mutex mutex_;
  std::vector<std::uint8_t*> free_, all_;
  std::uint64_t refused_ = 0;
};

}  // namespace tidepool::cupti
