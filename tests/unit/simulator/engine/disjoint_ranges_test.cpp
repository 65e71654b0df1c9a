#include "simulator/engine/disjoint_ranges.hpp"

#include <algorithm>
#include <random>
#include <vector>

#include "tests/catch.hpp"
#include "traces/ids.hpp"

namespace tidepool::disjoint_ranges_test {
namespace {

using Range = DisjointRanges<VersionId>::Range;

TEST_CASE("ranges of addresses are found by every address, however many come and go") {
  DisjointRanges<VersionId> places;
  std::vector<Range> all;  // the same places, in no order
  std::mt19937 random{5};
  const auto below = [&](std::int64_t limit) {
    return static_cast<std::int64_t>(random() % static_cast<unsigned>(limit));
  };
  const auto overlaps = [](Bytes first, Bytes end) {
    return [=](const Range& range) { return range.first < end && first < range.end; };
  };
  for (std::uint32_t i = 0; i < 20'000; ++i) {
    // They grow to some hundred, which takes several leaves, and become few again.
    const bool grows = i / 4'000 % 2 == 0;
    const Bytes first{below(40'000)}, end = first + Bytes{1 + below(40)};
    const auto other = std::find_if(all.begin(), all.end(), overlaps(first, end));
    REQUIRE((places.find(first, end) != nullptr) == (other != all.end()));
    if (grows || below(4) == 0) {
      const std::optional<VersionId> refused = places.add(first, end, VersionId{i});
      REQUIRE(refused.has_value() == (other != all.end()));
      if (!refused) {
        all.push_back({first, end, VersionId{i}});
        continue;
      }
      const auto is_named = [&](const Range& range) { return range.value == *refused && overlaps(first, end)(range); };
      REQUIRE(std::any_of(all.begin(), all.end(), is_named));
    }
    if (all.empty()) continue;
    const auto gone = all.begin() + below(static_cast<std::int64_t>(all.size()));
    if (i % 8 == 0) {
      gone->value = VersionId{i};
      places.set(gone->first, gone->value);
    } else {
      places.remove(gone->first);
      *gone = all.back();
      all.pop_back();
    }
  }
}

}  // namespace
}  // namespace tidepool::disjoint_ranges_test
