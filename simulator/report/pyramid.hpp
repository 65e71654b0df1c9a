// Level of detail: pictures of many rectangles in time and address with fewer and fewer of them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "simulator/report/history.hpp"

namespace tidepool {

/// A rectangle: [begin, end) in time and [first, last) in address, or in whatever stands for it.
struct Tile {
  Nanos begin, end;
  Bytes first, last;
  std::uint8_t kind = 0;  ///< decides the colour
  bool operator==(const Tile&) const = default;
};

struct Level {
  Nanos cell;               ///< its times are multiples of it
  std::vector<Tile> tiles;  ///< by begin, then address
};

/// The same picture in cells of time, for a scale at which a cell is no larger than a pixel. Times are moved outwards
/// to multiples of `cell`; addresses stay as they are. Tiles of the same cells that overlap become one, and so do those
/// that touch if both are lower than `height`, or one is and they are of one kind. One tile covers exactly what those
/// that it is made of cover together; it has the kind of the largest. O(n log n).
std::vector<Tile> coarser(std::span<const Tile> tiles, Nanos cell, Bytes height);

/// Coarser and coarser levels, finest first, for a picture of `duration` by `extent`: the last one has cells of about a
/// thousandth of each. A level that would save less than a third of the one before is left out. Empty if all of
/// `finest` can be drawn at any scale.
std::vector<Level> pyramid(std::span<const Tile> finest, Nanos duration, Bytes extent);

/// What is resident in cells of time: the points of the largest and of the last sum of each cell, as in
/// History::memory; times are multiples of `cell`.
std::vector<MemoryPoint> coarser(std::span<const MemoryPoint> points, Nanos cell);

}  // namespace tidepool
