// Device memory without addresses: the moments from which freed bytes may be written again.
#pragma once

#include <map>

#include "simulator/engine/links.hpp"

namespace tidepool {

/// Bytes of the places that have ended while an op or a copy still used them. With one stream, a new place waits until
/// all of them may be written. With several streams, the bytes of every ended place wait for their last user; a new
/// place first takes bytes that do not wait, and then those that may be written soonest. O(log n) for each place.
class CountedMemory {
 public:
  CountedMemory(Bytes capacity, bool one_stream) : capacity_{capacity}, one_stream_{one_stream} {}

  /// `size` bytes may be written from `free_from` on.
  void release(Bytes size, const Moment& free_from);

  /// The moment from which a new place may be written. With several streams, the bytes that the place takes are no
  /// longer among those that wait.
  /// @param held  bytes of all other places
  Moment take(Bytes size, Bytes held);

  /// Forgets the bytes that may be written soonest, while is_past(const Moment&) is true for them.
  template <class IsPast>
  void forget(IsPast is_past) {
    while (!pieces_.empty() && is_past(Moment{pieces_.begin()->first, pieces_.begin()->second.after})) {
      waiting_ -= pieces_.begin()->second.size;
      pieces_.erase(pieces_.begin());
    }
  }
  bool empty() const { return pieces_.empty(); }

  /// Calls visit(size, const Moment&) for all bytes that wait, those that may be written soonest first. With one
  /// stream, calls it once, with size 0 and the moment from which all of them may be written.
  template <class Visit>
  void for_each(Visit visit) const {
    if (one_stream_) return visit(Bytes{}, latest_);
    for (const auto& [time, piece] : pieces_) visit(piece.size, Moment{time, piece.after});
  }

 private:
  struct Piece {
    Bytes size;
    Copies after;
  };

  Bytes capacity_;
  bool one_stream_;
  Moment latest_;                            // one stream: of all places
  std::multimap<Nanos, Piece> pieces_ = {};  // several streams, by time
  Bytes waiting_ = {};                       // of all pieces
};

}  // namespace tidepool
