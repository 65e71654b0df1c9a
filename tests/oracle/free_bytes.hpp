// Device memory of several streams without addresses: the times from which free bytes may be written.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "traces/base/quantity.hpp"

namespace tidepool::optimum {

/// Free bytes that some op or copy may still use, by the time from which they may be written. All other free bytes may
/// be written at any time. A place may choose its bytes. In the order of these times, it skips the first `leaves` bytes
/// and takes the next ones. Any other choice that may be written from the same time on leaves no better bytes to
/// others.
class FreeBytes {
 public:
  struct Piece {
    Nanos from;
    Bytes size;
  };

  const std::vector<Piece>& pieces() const { return pieces_; }
  /// Free bytes that may be written at `time`. @param free  all free bytes
  Bytes until(Nanos time, Bytes free) const;
  void release(Bytes size, Nanos from);
  /// Takes `size` bytes. @param free  all free bytes, at least `leaves` and `size` together
  /// @return  the time from which they may be written; `long_ago` for bytes that may be written at any time
  Nanos take(Bytes leaves, Bytes size, Bytes free, Nanos long_ago);
  void shift(Nanos by);  ///< makes all times earlier by `by`

 private:
  std::vector<Piece> pieces_;  ///< in the order of time
};

/// Whether each byte of the first may be written no later than the byte of the second with the same rank. Pieces are
/// pairs of words, time and size, in the order of time; both have the same number of free bytes.
bool never_later(std::span<const std::int64_t> first, std::span<const std::int64_t> second);

}  // namespace tidepool::optimum
