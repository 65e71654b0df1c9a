// Scale from the bytes of a device to the memory of a host: one word stands for many bytes.
#pragma once

#include <cstddef>
#include <vector>

#include "simulator/plan.hpp"
#include "traces/trace.hpp"

namespace tidepool {

/// Maps the addresses of a plan to words of an arena so that places overlap there exactly if they overlap on the
/// device. The ends of all places, and of the contents in them, divide the addresses into pieces. A piece that no place
/// ever covers takes no memory. Every other piece takes one word for each `unit()` bytes; its last word may stand for
/// fewer. So a place takes at least as many words as its content has, and with the largest unit, a plan needs one word
/// for each piece. Places in mapped address ranges have their own words.
class Scale {
 public:
  /// Uses the smallest of the units least, 2 least, 4 least, ... with which the arena, host copies and places without
  /// addresses fit into `aim`. O(n log n) for n actions.
  /// @throws InputError  "the plan needs 160 KiB of memory, a word for each of the 20,480 pieces into which its places
  ///                     divide it; expected at most 64 KiB (--arena)"
  Scale(const Trace& trace, const Plan& plan, Bytes aim, Bytes least = Bytes{1});

  /// Bytes of the device that one word stands for, at most.
  Bytes unit() const { return unit_; }
  /// The number of words of a content of this size.
  std::size_t words(Bytes size) const {
    return size > Bytes{} ? static_cast<std::size_t>((size.count() - 1) / unit_.count() + 1) : 0;
  }
  /// Words of all pieces together.
  std::size_t arena_words() const { return arena_words_; }
  /// First word of an address at which a place or its content begins or ends.
  std::size_t word(Bytes offset) const;

 private:
  struct Piece {
    Bytes first;
    Bytes covered;         ///< its length, or 0 if no place ever covers it
    std::size_t word = 0;  ///< index in the arena of the word at `first`
  };
  std::vector<Piece> pieces_;  ///< by address; each ends where the next begins
  Bytes unit_;
  std::size_t arena_words_ = 0;
};

}  // namespace tidepool
