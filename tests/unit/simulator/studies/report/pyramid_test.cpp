#include "simulator/studies/report/pyramid.hpp"

#include <random>
#include <set>

#include "tests/catch.hpp"

namespace tidepool::pyramid_test {
namespace {

using Cells = std::set<std::pair<std::int64_t, std::int64_t>>;

/// The pairs (cell of time, address) that tiles cover. A cell that a tile covers partly counts as covered.
Cells covered(std::span<const Tile> tiles, Nanos cell) {
  Cells all;
  for (const Tile& tile : tiles) {
    const std::int64_t first = tile.begin / cell;
    const std::int64_t last = std::max(first + 1, (tile.end + cell - Nanos{1}) / cell);
    for (std::int64_t t = first; t < last; ++t)
      for (std::int64_t a = tile.first.count(); a < tile.last.count(); ++a) all.emplace(t, a);
  }
  return all;
}

std::vector<Tile> random_tiles(std::size_t count, std::int64_t duration, std::int64_t extent) {
  std::mt19937_64 random{7};
  const auto below = [&](std::int64_t limit) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(limit));
  };
  std::vector<Tile> tiles;
  for (std::size_t i = 0; i < count; ++i) {
    const std::int64_t begin = below(duration), first = below(extent);
    tiles.push_back({Nanos{begin}, Nanos{begin + 1 + below(40)}, Bytes{first}, Bytes{first + 1 + below(9)},
                     static_cast<std::uint8_t>(below(3))});
  }
  return tiles;
}

}  // namespace

TEST_CASE("a coarser level covers exactly the area of the finer one") {
  const std::vector<Tile> finest = random_tiles(400, 2'000, 60);
  std::vector<Tile> below = finest;
  for (const Nanos cell : {2_ns, 8_ns, 64_ns, 512_ns}) {
    const std::vector<Tile> level = coarser(below, cell, 4_B);
    CHECK(covered(level, cell) == covered(below, cell));
    CHECK(covered(level, cell) == covered(finest, cell));
    CHECK(level.size() <= below.size());
    below = level;
  }
  CHECK(below.size() < finest.size());
}

TEST_CASE("tiles that overlap, and low ones that touch, become one tile, which has the kind of the larger one") {
  // The first two tiles share a cell of 10 ns and overlap in address. The third is adjacent to them and has less than
  // 4 B. The last is beyond a hole.
  const std::vector<Tile> tiles{
      {0_ns, 3_ns, 0_B, 8_B, 1}, {4_ns, 9_ns, 0_B, 8_B, 2}, {0_ns, 9_ns, 8_B, 10_B, 2}, {0_ns, 9_ns, 11_B, 12_B, 1}};
  CHECK(coarser(tiles, 10_ns, 4_B) == std::vector<Tile>{{0_ns, 10_ns, 0_B, 10_B, 2}, {0_ns, 10_ns, 11_B, 12_B, 1}});
  // Neither of two neighbours of one kind has less than 4 B, so they stay two tiles.
  const std::vector<Tile> high{{0_ns, 9_ns, 0_B, 8_B, 1}, {0_ns, 9_ns, 8_B, 16_B, 1}};
  CHECK(coarser(high, 10_ns, 4_B).size() == 2);
}

TEST_CASE("levels of a pyramid are nested, and the top level has few tiles") {
  std::vector<Tile> finest;
  for (std::int64_t i = 0; i < 50'000; ++i)
    finest.push_back({Nanos{i * 100}, Nanos{i * 100 + 90}, Bytes{i % 5 * 10}, Bytes{i % 5 * 10 + 10},
                      static_cast<std::uint8_t>(i % 2)});
  const std::vector<Level> levels = pyramid(finest, Nanos{5'000'000}, 50_B);
  REQUIRE(levels.size() > 1);
  for (std::size_t i = 0; i < levels.size(); ++i) {
    if (i > 0) CHECK(levels[i].cell.count() % levels[i - 1].cell.count() == 0);
    CHECK(levels[i].tiles.size() * 3 <= (i > 0 ? levels[i - 1].tiles.size() : finest.size()) * 2);
    CHECK(covered(levels[i].tiles, levels[i].cell) == covered(finest, levels[i].cell));
  }
  // A cell has at most one tile at each of the five places, and one tile that crosses its border.
  CHECK(levels.back().tiles.size() <= 6 * 1'024);
  CHECK(pyramid(std::span{finest}.first(4'000), Nanos{5'000'000}, 50_B).empty());
}

TEST_CASE("memory over time keeps its peak and its last value in every cell") {
  std::vector<MemoryPoint> points;
  std::mt19937_64 random{3};
  Bytes peak;
  for (std::int64_t i = 0; i < 1'000; ++i) {
    MemoryPoint point{.time = Nanos{i * 3}};
    for (Bytes& held : point.held) held = Bytes{static_cast<std::int64_t>(random() % 100)};
    peak = std::max(peak, point.sum());
    points.push_back(point);
  }
  const std::vector<MemoryPoint> fewer = coarser(points, 100_ns);
  CHECK(fewer.size() <= 60);
  Bytes largest;
  for (const MemoryPoint& point : fewer) largest = std::max(largest, point.sum());
  CHECK(largest == peak);
  CHECK(fewer.back().held == points.back().held);
  CHECK(fewer.back().time == 2'900_ns);
}

}  // namespace tidepool::pyramid_test
