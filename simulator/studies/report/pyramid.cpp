#include "simulator/studies/report/pyramid.hpp"

#include <algorithm>
#include <tuple>

namespace tidepool {
namespace {

constexpr std::int64_t kFinestCells = std::int64_t{1} << 20, kCoarsestCells = 1024;
constexpr std::size_t kDrawnAtOnce = 4096;

Nanos cells_of(Nanos duration, std::int64_t count) { return Nanos{duration.count() / count + 1}; }

}  // namespace

std::vector<Tile> coarser(std::span<const Tile> tiles, Nanos cell, Bytes height) {
  struct Part {
    Tile tile;
    double weight;  // area of the picture that its kind covers
  };
  std::vector<Part> parts;
  parts.reserve(tiles.size());
  for (const Tile& tile : tiles) {
    const double weight = static_cast<double>((tile.end - tile.begin).count() + 1) *
                          static_cast<double>((tile.last - tile.first).count());
    const std::int64_t begin = tile.begin / cell;
    const std::int64_t end = std::max(begin + 1, (tile.end + cell - Nanos{1}) / cell);
    parts.push_back({{cell * begin, cell * end, tile.first, tile.last, tile.kind}, weight});
  }
  std::sort(parts.begin(), parts.end(), [](const Part& a, const Part& b) {
    return std::tie(a.tile.begin, a.tile.end, a.tile.first, a.tile.last, a.tile.kind) <
           std::tie(b.tile.begin, b.tile.end, b.tile.first, b.tile.last, b.tile.kind);
  });
  std::vector<Part> merged;
  for (const Part& part : parts) {
    if (!merged.empty()) {
      auto& [last, weight] = merged.back();
      const Tile& next = part.tile;
      const bool same_cells = last.begin == next.begin && last.end == next.end;
      const bool last_low = last.last - last.first < height, next_low = next.last - next.first < height;
      const bool touch =
          next.first == last.last && ((last_low && next_low) || ((last_low || next_low) && last.kind == next.kind));
      if (same_cells && (next.first < last.last || touch)) {
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
    merged.push_back(part);
  }
  std::vector<Tile> result;
  result.reserve(merged.size());
  for (const Part& part : merged) result.push_back(part.tile);
  std::sort(result.begin(), result.end(),
            [](const Tile& a, const Tile& b) { return std::tie(a.begin, a.first) < std::tie(b.begin, b.first); });
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
