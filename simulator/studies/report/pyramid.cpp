#include "simulator/studies/report/pyramid.hpp"

#include <algorithm>
#include <tuple>

namespace tidepool {
namespace {

constexpr std::int64_t kFinestCells = std::int64_t{1} << 20, kCoarsestCells = 1024;
constexpr std::size_t kDrawnAtOnce = 4096;

Nanos cells_of(Nanos duration, std::int64_t count) { return Nanos{duration.count() / count + 1}; }

/// A tile of a coarser picture, and the area of the picture that its kind covers.
struct Part {
  Tile tile;
  double weight;
};

Part widened(const Tile& tile, Nanos cell) {
  const double weight =
      static_cast<double>((tile.end - tile.begin).count() + 1) * static_cast<double>((tile.last - tile.first).count());
  const std::int64_t begin = tile.begin / cell;
  const std::int64_t end = std::max(begin + 1, (tile.end + cell - Nanos{1}) / cell);
  return {{cell * begin, cell * end, tile.first, tile.last, tile.kind}, weight};
}

/// Merges parts that begin together, and adds the tiles, by address.
void add_merged(std::vector<Part>& parts, Bytes height, std::vector<Tile>& result) {
  std::sort(parts.begin(), parts.end(), [](const Part& a, const Part& b) {
    return std::tie(a.tile.end, a.tile.first, a.tile.last, a.tile.kind) <
           std::tie(b.tile.end, b.tile.first, b.tile.last, b.tile.kind);
  });
  const std::size_t first_result = result.size();
  double weight = 0;  // of the last tile
  for (const Part& part : parts) {
    const Tile& next = part.tile;
    if (result.size() > first_result) {
      Tile& last = result.back();
      const bool last_low = last.last - last.first < height, next_low = next.last - next.first < height;
      const bool touch =
          next.first == last.last && ((last_low && next_low) || ((last_low || next_low) && last.kind == next.kind));
      if (last.end == next.end && (next.first < last.last || touch)) {
        last.last = std::max(last.last, next.last);
        if (last.kind == next.kind) {
          weight += part.weight;
        } else if (part.weight > weight) {
          last.kind = next.kind;
          weight = part.weight;
        }
        continue;
      }
    }
    result.push_back(next);
    weight = part.weight;
  }
  std::sort(result.begin() + static_cast<std::ptrdiff_t>(first_result), result.end(),
            [](const Tile& a, const Tile& b) { return a.first < b.first; });
}

}  // namespace

std::vector<Tile> coarser(std::span<const Tile> tiles, Nanos cell, Bytes height) {
  const auto earlier = [](const Tile& a, const Tile& b) { return a.begin < b.begin; };
  std::vector<Tile> by_begin;
  if (!std::ranges::is_sorted(tiles, earlier)) {
    by_begin.assign(tiles.begin(), tiles.end());
    std::ranges::sort(by_begin, earlier);
    tiles = by_begin;
  }
  std::vector<Tile> result;
  result.reserve(tiles.size());
  std::vector<Part> parts;  // that begin in one cell: few beside all tiles
  for (const Tile& tile : tiles) {
    const Part part = widened(tile, cell);
    if (!parts.empty() && parts.front().tile.begin != part.tile.begin) {
      add_merged(parts, height, result);
      parts.clear();
    }
    parts.push_back(part);
  }
  add_merged(parts, height, result);
  return result;
}

std::vector<Level> pyramid(std::span<const Tile> finest, Nanos duration, Bytes extent) {
  std::vector<Level> levels;
  std::span<const Tile> below = finest;
  Nanos below_cell{1};
  for (std::int64_t cells = kFinestCells; cells >= kCoarsestCells && below.size() > kDrawnAtOnce; cells /= 2) {
    // Cells are multiples of finer cells. So a time that is moved outwards level by level ends at the same border as a
    // time that is moved once.
    const Nanos cell = below_cell * ((cells_of(duration, cells) + below_cell - Nanos{1}) / below_cell);
    std::vector<Tile> tiles = coarser(below, cell, Bytes{extent.count() / cells});
    if (tiles.size() * 3 > below.size() * 2) continue;
    levels.push_back({cell, std::move(tiles)});
    below = levels.back().tiles;
    below_cell = cell;
  }
  return levels;
}

std::vector<MemoryPoint> coarser(std::span<const MemoryPoint> points, Nanos cell) {
  std::vector<MemoryPoint> result;
  for (std::size_t i = 0; i < points.size();) {
    const std::int64_t index = points[i].time / cell;
    const MemoryPoint* largest = &points[i];
    std::size_t last = i;
    for (; i < points.size() && points[i].time / cell == index; ++i) {
      last = i;
      if (points[i].sum() > largest->sum()) largest = &points[i];
    }
    result.push_back(*largest);
    result.back().time = cell * index;
    if (largest == &points[last]) continue;
    result.push_back(points[last]);
    result.back().time = cell * index;
  }
  return result;
}

}  // namespace tidepool
