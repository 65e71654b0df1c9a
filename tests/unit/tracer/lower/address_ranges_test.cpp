#include "tracer/lower/address_ranges.hpp"

#include <cstdint>
#include <random>
#include <vector>

#include "tests/catch.hpp"

namespace tidepool::address_ranges_test {

using tidepool::AddressRanges;

TEST_CASE("address ranges that touch become one, and removing the middle leaves both sides") {
  AddressRanges ranges;
  ranges.add(10, 20);
  ranges.add(20, 30);
  CHECK(ranges.end_of(10) == 30);
  CHECK(ranges.end_of(9) == 9);
  ranges.remove(15, 18);
  CHECK(ranges.end_of(10) == 15);
  CHECK(ranges.end_of(17) == 17);
  CHECK(ranges.end_of(18) == 30);
  ranges.add(0, 0);
  CHECK(ranges.end_of(0) == 0);
}

TEST_CASE("address ranges hold the same addresses as a list") {
  constexpr std::uint64_t kAddresses = 40;
  std::mt19937 random{1};
  const auto below = [&](std::uint64_t count) { return random() % count; };
  AddressRanges ranges;
  std::vector<bool> held(kAddresses + 1);
  for (int round = 0; round < 500; ++round) {
    const std::uint64_t first = below(kAddresses), last = below(kAddresses + 1);
    const bool adds = below(2) == 0;
    adds ? ranges.add(first, last) : ranges.remove(first, last);
    for (std::uint64_t at = first; at < last; ++at) held[at] = adds;
    for (std::uint64_t at = 0; at < kAddresses; ++at) {
      std::uint64_t end = at;
      while (held[end]) ++end;
      REQUIRE(ranges.end_of(at) == end);
    }
  }
}

}  // namespace tidepool::address_ranges_test
