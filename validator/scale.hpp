// How the bytes of a device fit into the memory of a host: one word stands for a power of two of them.
#pragma once

#include <cstddef>
#include <map>

#include "simulator/plan.hpp"
#include "traces/trace.hpp"

namespace tidepool {

/// Maps the addresses of a plan to words of an arena so that places overlap there exactly if they overlap on the
/// device. Segments, wherever the device put them, stand next to each other in the arena, and so do windows onto their
/// memory: what lies in a window has words of its own.
class Scale {
 public:
  /// Takes the least unit with which arena and host copies fit into `aim`. Every offset must be a multiple of the unit;
  /// where that forbids a large unit, up to `limit` is used.
  /// @throws InputError  "the plan needs 6.0 GiB of memory, because its addresses are multiples of 512 bytes only;
  ///                     expected at most 4.0 GiB (--arena)"
  Scale(const Trace& trace, const Plan& plan, Bytes aim, Bytes limit);

  /// Bytes of the device that one word stands for.
  Bytes unit() const { return unit_; }
  std::size_t words(Bytes size) const {
    return static_cast<std::size_t>((size.count() + unit_.count() - 1) / unit_.count());
  }
  std::size_t arena_words() const { return arena_words_; }
  /// First word of an address that the plan uses.
  std::size_t word(Bytes offset) const;

 private:
  struct Range {
    Bytes first, end;
    std::size_t word = 0;  ///< in the arena, of `first`
  };
  std::vector<Range> ranges_;  ///< of addresses, sorted, disjoint
  Bytes unit_{1};
  std::size_t arena_words_ = 0;
};

}  // namespace tidepool
