// Addresses that are taken in each section of time.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "simulator/packing/sections.hpp"

namespace tidepool {

/// The lowest hole that fits, or the smallest (lowest address among equals; the open end above all is the largest).
enum class Fit : std::uint8_t { kFirst, kBest };

/// A segment tree over the sections. An item hangs at the O(log n) nodes that make up its ranges; every node knows the
/// addresses taken by the items that hang at it, and those taken anywhere below, each as a list of disjoint runs. So a
/// query looks at the nodes that make up its ranges and at those above them, and high up the runs have grown together.
/// Cost of both operations: O(log n) lists, whose runs in question are merged.
class Occupancy {
 public:
  explicit Occupancy(std::uint32_t sections);

  /// Takes [offset, offset + size) during the ranges, whatever has been taken before.
  void take(std::span<const SectionRange> ranges, std::int64_t offset, std::int64_t size);

  /// Where `size` > 0 bytes find room during all of the ranges: the least multiple of `alignment` in the hole.
  /// @param from  nothing below it is considered
  std::int64_t find(std::span<const SectionRange> ranges, std::int64_t size, std::int64_t alignment, Fit fit,
                    std::int64_t from = 0);

 private:
  struct Run {
    std::int64_t first, last;
  };
  using Runs = std::vector<Run>;
  struct Cursor {
    const Run* next;
    const Run* end;
  };

  static void unite(Runs& runs, Run added);
  void open(const Runs& runs, std::int64_t from);
  void sift(std::size_t hole);

  std::uint32_t leaves_ = 1;
  int height_ = 0;
  std::vector<Runs> here_, below_;  // by node; `below` includes `here`
  std::vector<Cursor> heap_;        // least first address on top
};

}  // namespace tidepool
