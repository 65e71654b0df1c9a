// Levels of detail: coarser and coarser pictures of many rectangles in time and address.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "simulator/studies/report/history.hpp"

namespace tidepool {

/// A rectangle: [begin, end) in time and [first, last) in address, or in another quantity.
struct Tile {
  Nanos begin, end;
  Bytes first, last;
  std::uint8_t kind = 0;  ///< decides the colour
  bool operator==(const Tile&) const = default;
};

struct Level {
  Nanos cell;               ///< width of a cell; all times are multiples of it
  std::vector<Tile> tiles;  ///< by begin, then address
};

/// The same picture in cells of time, for a scale at which a cell is at most a pixel wide. Times are moved outwards to
/// multiples of `cell`; addresses do not change. Two tiles with equal begin and end become one if they overlap in
/// address. If they only touch, they become one if both are lower than `height`, or if one is and both are of one
/// kind. The new tile covers exactly the area of the old ones together, and has the kind of the one with the largest
/// area. O(n log n).
std::vector<Tile> coarser(std::span<const Tile> tiles, Nanos cell, Bytes height);

/// Coarser and coarser levels, finest first, for a picture of `duration` by `extent`. A cell lasts from a millionth to
/// about a thousandth of `duration`. A level is left out if it saves less than a third of the tiles. Empty if `finest`
/// is small enough to be drawn at any scale.
std::vector<Level> pyramid(std::span<const Tile> finest, Nanos duration, Bytes extent);

/// Resident bytes in cells of time: for each cell, the point with the largest sum and the last point, as in
/// History::memory. Times are multiples of `cell`.
std::vector<MemoryPoint> coarser(std::span<const MemoryPoint> points, Nanos cell);

}  // namespace tidepool
