#include "tracer/cupti/live_ranges.hpp"

#include <map>
#include <random>

#include "tests/catch.hpp"

namespace tidepool::live_ranges_test {

using namespace tidepool::cupti;

TEST_CASE("a live range contains its first byte but not the byte behind its last") {
  LiveRanges ranges;
  ranges.add(4096, 512);
  CHECK(ranges.find(4095) == nullptr);
  REQUIRE(ranges.find(4096) != nullptr);
  CHECK(*ranges.find(4607) == LiveRange{4096, 4608, false});
  CHECK(ranges.find(4608) == nullptr);
  CHECK(ranges.remove(4600) == std::nullopt);  // a free must name the first address
  CHECK(ranges.remove(4096) == LiveRange{4096, 4608, false});
  CHECK(ranges.find(4096) == nullptr);
}

TEST_CASE("an allocation over live ranges ends these, since their frees were not seen") {
  LiveRanges ranges;
  ranges.add(0, 100);
  ranges.add(100, 100);
  ranges.add(300, 100, true);
  CHECK(ranges.add(150, 200) == 2);  // the second and the third
  CHECK(ranges.size() == 2);
  CHECK(ranges.find(149) == nullptr);
  CHECK(ranges.find(99)->begin == 0);
  CHECK(ranges.find(349)->begin == 150);
  CHECK(ranges.add(1000, 0) == 0);
  CHECK(ranges.find(1000) == nullptr);
  CHECK(ranges.add(~0ULL - 5, 100) == 0);  // no wrap-around
  CHECK(ranges.find(~0ULL - 1) != nullptr);
}

TEST_CASE("unmapping ends every mapping inside the range, and no other") {
  LiveRanges ranges;
  for (std::uint64_t at = 0; at < 50; at += 10) ranges.add(at, 10);
  CHECK(ranges.remove_within(5, 30) == 2);  // 10..20 and 20..30; 0..10 and 30..40 are not inside
  CHECK(ranges.size() == 3);
  CHECK(ranges.find(15) == nullptr);
  CHECK(ranges.find(35) != nullptr);
  CHECK(ranges.remove_within(100, 10) == 0);
}

TEST_CASE("live ranges give the same answers as a sorted map of ranges") {
  std::mt19937_64 random{7};
  LiveRanges ranges;
  std::map<std::uint64_t, std::uint64_t> expected;  // begin to end
  for (int round = 0; round < 2000; ++round) {
    const std::uint64_t begin = random() % 1000, bytes = 1 + random() % 30;
    if (random() % 3 == 0 && !expected.empty()) {
      auto victim = expected.begin();
      std::advance(victim, static_cast<std::ptrdiff_t>(random() % expected.size()));
      CHECK(ranges.remove(victim->first).has_value());
      expected.erase(victim);
    } else {
      std::erase_if(expected, [&](const auto& range) { return range.first < begin + bytes && begin < range.second; });
      expected[begin] = begin + bytes;
      ranges.add(begin, bytes);
    }
    REQUIRE(ranges.size() == expected.size());
    const std::uint64_t asked = random() % 1100;
    auto after = expected.upper_bound(asked);
    const bool inside = after != expected.begin() && std::prev(after)->second > asked;
    const LiveRange* found = ranges.find(asked);
    REQUIRE((found != nullptr) == inside);
    if (inside) CHECK(found->begin == std::prev(after)->first);
  }
}

}  // namespace tidepool::live_ranges_test
