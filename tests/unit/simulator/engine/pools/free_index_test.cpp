#include "simulator/engine/pools/free_index.hpp"

#include <random>
#include <set>
#include <vector>

#include "tests/catch.hpp"

namespace tidepool::free_index_test {

TEST_CASE("thousands of free blocks of few sizes are found, passed and removed in order") {
  std::mt19937_64 random{1};
  FreeIndex index;
  std::set<FreeBlock> expected;
  const auto check = [&](std::int64_t size) {
    const auto least = expected.lower_bound(FreeBlock{Bytes{size}, Bytes{}, 0});
    const FreeIndex::Place found = index.find(Bytes{size});
    REQUIRE(found.valid() == (least != expected.end()));
    if (found.valid()) REQUIRE(index.at(found) == *least);
  };
  for (int round = 0; round < 6; ++round) {
    for (std::uint32_t i = 0; i < 12'000; ++i) {
      const bool grows = round % 2 == 0;
      if (expected.empty() || random() % 4 < (grows ? 3U : 1U)) {
        // 1000 to 1003 are of one bin, as are 4000 to 4003.
        const FreeBlock block{Bytes{static_cast<std::int64_t>((random() % 2 == 0 ? 1'000 : 4'000) + random() % 4)},
                              Bytes{static_cast<std::int64_t>(random() % 1'000'000)}, i};
        if (expected.lower_bound(FreeBlock{block.size, block.address, 0}) ==
            expected.upper_bound(FreeBlock{block.size, block.address, UINT32_MAX}))
          index.insert(block), expected.insert(block);
      } else if (auto erased =
                     expected.lower_bound(FreeBlock{Bytes{1'000 + static_cast<std::int64_t>(random() % 3'003)},
                                                    Bytes{static_cast<std::int64_t>(random() % 1'000'000)}, 0});
                 erased != expected.end()) {
        index.erase(erased->size, erased->address);
        expected.erase(erased);
      }
      check(static_cast<std::int64_t>(999 + random() % 6));
      check(static_cast<std::int64_t>(3'999 + random() % 6));
    }
    REQUIRE(index.count() == expected.size());
    if (!expected.empty()) REQUIRE(index.largest() == expected.rbegin()->size);
    std::vector<FreeBlock> passed;
    for (FreeIndex::Place place = index.first(); place.valid(); place = index.next(place))
      passed.push_back(index.at(place));
    REQUIRE(passed == std::vector<FreeBlock>(expected.begin(), expected.end()));
  }
  CHECK(expected.size() > 1'000);  // several pages of a bin
}

}  // namespace tidepool::free_index_test
