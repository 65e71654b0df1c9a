// Addresses in use in each section.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "simulator/solvers/packing/sections.hpp"

namespace tidepool {

/// kFirst: the lowest hole that fits. kBest: the smallest, and the lowest among equals. The open end above all is a
/// hole, the largest one.
enum class Fit : std::uint8_t { kFirst, kBest };

/// A segment tree over the sections. An item belongs to the O(log n) nodes that make up its ranges. Every node has two
/// lists of disjoint address ranges: those of its own items, and those of all items at it or below it. A query looks at
/// the nodes that make up its ranges and at the nodes above them. Both operations read O(log n) lists; taking changes a
/// chunk of each, and a query merges their chunks and leaves out those without a hole that is large enough.
class Occupancy {
 public:
  explicit Occupancy(std::uint32_t sections);

  /// Takes [offset, offset + size) during the ranges, whatever has been taken before.
  void take(std::span<const SectionRange> ranges, std::int64_t offset, std::int64_t size);

  /// An offset at which `size` > 0 bytes are free during all of the ranges: the least multiple of `alignment` in the
  /// hole that `fit` chooses.
  /// @param from  nothing below it is considered
  std::int64_t find(std::span<const SectionRange> ranges, std::int64_t size, std::int64_t alignment, Fit fit,
                    std::int64_t from = 0);

 private:
  struct Run {
    std::int64_t first, last;
  };
  /// At least one run, in order.
  struct Chunk {
    std::vector<Run> runs;
    std::int64_t hole = kUnknown;  ///< bytes between two adjacent runs, at most; kept only if a list has several chunks
  };
  using Runs = std::vector<Chunk>;
  static constexpr std::int64_t kUnknown = -1;
  struct Cursor {
    const Run* next;
    const Run* end;  ///< of the chunk
    Chunk* chunk;
    Chunk* last;  ///< of the list
  };

  static void unite(Runs& chunks, Run added);
  static std::int64_t hole_in(Chunk& chunk);
  static bool advance(Cursor& cursor, std::int64_t& top, std::int64_t size);
  void open(Runs& chunks, std::int64_t from);
  void sift(std::size_t hole);

  std::uint32_t leaves_ = 1;
  int height_ = 0;
  std::vector<Runs> here_, below_;  // by node; `below` includes `here`
  std::vector<Cursor> heap_;        // least first address on top
};

}  // namespace tidepool
