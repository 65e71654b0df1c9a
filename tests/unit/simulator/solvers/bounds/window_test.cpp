#include "policies/remat/coop/contiguous_window.hpp"
#include "tests/catch.hpp"

namespace tidepool::window_test {

namespace {

constexpr VersionId kHeld{std::size_t{0}};

Stretch free_of(int size) { return {Bytes{size}, 0, {}, false}; }
Stretch held_of(int size, double cost) { return {Bytes{size}, cost, kHeld, false}; }
Stretch fixed_of(int size) { return {Bytes{size}, 0, kHeld, true}; }

struct Found {
  std::size_t first, last;
  double cost;
  bool operator==(const Found&) const = default;
};

std::vector<Found> windows(const std::vector<Stretch>& stretches, int need, bool shrink_at_end = true) {
  std::vector<Found> found;
  for_each_window(stretches, Bytes{need}, shrink_at_end, [&](const Window& window) {
    found.push_back({window.first, window.last, window.cost});
  });
  return found;
}

}  // namespace

TEST_CASE("a window spans free memory and evictable versions, and ends as soon as it is large enough") {
  CHECK(windows({held_of(4, 1), free_of(2), held_of(4, 2)}, 6) == std::vector<Found>{{0, 2, 1}, {1, 3, 2}});
  CHECK(windows({held_of(4, 1), free_of(2), held_of(4, 2)}, 7) == std::vector<Found>{{0, 3, 3}});
  CHECK(windows({held_of(4, 1), free_of(2), held_of(4, 2)}, 11).empty());
}

TEST_CASE("a window does not contain versions that cannot be evicted") {
  CHECK(windows({held_of(4, 1), fixed_of(1), held_of(4, 2), held_of(4, 3)}, 8) == std::vector<Found>{{2, 4, 5}});
  CHECK(windows({held_of(4, 1), fixed_of(1), held_of(4, 2)}, 5).empty());
}

TEST_CASE("free memory alone is no window") { CHECK(windows({free_of(8), held_of(4, 2)}, 8).size() == 0); }

TEST_CASE("a window shrinks from the left while it is still large enough") {
  CHECK(windows({held_of(2, 1), held_of(2, 2), held_of(8, 4)}, 8) ==
        std::vector<Found>{{0, 3, 7}, {1, 3, 6}, {2, 3, 4}});
}

TEST_CASE("as in the paper, the window at the end is not shrunk") {
  CHECK(windows({held_of(2, 1), held_of(2, 2), held_of(8, 4)}, 8, false) == std::vector<Found>{{0, 3, 7}});
  // Both variants shrink the window that ends before the last version.
  CHECK(windows({held_of(2, 1), held_of(8, 4), held_of(2, 9)}, 8, false) == std::vector<Found>{{0, 2, 5}, {1, 2, 4}});
}

}  // namespace tidepool::window_test
