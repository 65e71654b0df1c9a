#include "simulator/solvers/bounds/absent_sets.hpp"

#include <algorithm>
#include <set>

#include "tests/catch.hpp"
#include "tests/random_trace.hpp"

namespace tidepool::absent_sets_test {

TEST_CASE("the least sum that makes room is a sum of whole buffers") {
  const std::vector<Bytes> sizes{6_B, 10_B, 15_B};
  // All sums: 6, 10, 15, 16, 21, 25, 31.
  CHECK(least_sum(sizes, 1_B) == 6_B);
  CHECK(least_sum(sizes, 6_B) == 6_B);
  CHECK(least_sum(sizes, 7_B) == 10_B);
  CHECK(least_sum(sizes, 17_B) == 21_B);
  CHECK(least_sum(sizes, 26_B) == 31_B);
  CHECK(least_sum(sizes, 31_B) == 31_B);
  CHECK(least_sum(sizes, 0_B) == 0_B);
}

TEST_CASE("a sum that would take long to find is rounded up to a multiple of the sizes' common divisor") {
  // 2^40 units of 512 B.
  const std::vector<Bytes> sizes{Bytes{std::int64_t{512} << 40}, 1024_B, 1536_B};
  CHECK(least_sum(sizes, 1_B) == 512_B);
  CHECK(least_sum(sizes, 513_B) == 1024_B);
}

TEST_CASE("a set of buffers is listed if it makes room and no part of it does") {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    tests::Random random{seed};
    std::vector<Bytes> sizes;
    Bytes all;
    for (std::size_t i = 1 + random.below(6); i > 0; --i)
      sizes.push_back(Bytes{static_cast<std::int64_t>(1 + random.below(9))}), all += sizes.back();
    const Bytes excess{static_cast<std::int64_t>(1 + random.below(static_cast<std::size_t>(all.count())))};
    Bytes least = all;
    std::set<std::vector<std::uint32_t>> expected;
    for (std::uint32_t set = 1; set < 1U << sizes.size(); ++set) {
      Bytes sum, smallest = all;
      std::vector<std::uint32_t> members;
      for (std::uint32_t i = 0; i < sizes.size(); ++i)
        if ((set >> i & 1) != 0) sum += sizes[i], smallest = std::min(smallest, sizes[i]), members.push_back(i);
      if (sum >= excess) least = std::min(least, sum);
      if (sum >= excess && sum - smallest < excess) expected.insert(members);
    }
    AbsentSets found = absent_sets(sizes, excess);
    INFO("seed " << seed);
    REQUIRE(found.possible);
    REQUIRE(found.least == least);
    for (std::vector<std::uint32_t>& set : found.sets) std::sort(set.begin(), set.end());
    REQUIRE(std::set(found.sets.begin(), found.sets.end()) == expected);
    REQUIRE(found.sets.size() == expected.size());
    REQUIRE_FALSE(absent_sets(sizes, all + 1_B).possible);
  }
}

TEST_CASE("too many sets are not listed") {
  // Any five of ten equal buffers make room: 252 sets.
  const AbsentSets found = absent_sets(std::vector<Bytes>(10, 4_B), 18_B);
  CHECK(found.possible);
  CHECK(found.least == 20_B);
  CHECK(found.sets.empty());
}

}  // namespace tidepool::absent_sets_test
