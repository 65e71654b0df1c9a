#include "simulator/engine/counted_memory.hpp"

#include <algorithm>

namespace tidepool {

void CountedMemory::release(Bytes size, const Moment& free_from) {
  if (one_stream_) {
    latest_ = latest(latest_, free_from);
  } else if (size > Bytes{}) {
    pieces_.emplace(free_from.time, Piece{size, free_from.after});
    waiting_ += size;
  }
}

Moment CountedMemory::take(Bytes size, Bytes held) {
  if (one_stream_) return latest_;
  Moment last;
  for (Bytes missing = held + waiting_ + size - capacity_; missing > Bytes{} && !pieces_.empty();) {
    const auto first = pieces_.begin();
    Piece& piece = first->second;
    last = latest(last, {first->first, piece.after});
    const Bytes taken = std::min(missing, piece.size);
    missing -= taken, waiting_ -= taken, piece.size -= taken;
    if (piece.size == Bytes{}) pieces_.erase(first);
  }
  return last;
}

}  // namespace tidepool
