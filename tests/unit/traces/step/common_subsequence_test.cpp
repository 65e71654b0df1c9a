#include "traces/step/common_subsequence.hpp"

#include <algorithm>

#include "tests/catch.hpp"
#include "tests/random_trace.hpp"

namespace tidepool::common_subsequence_test {

namespace {

using Letters = std::vector<std::uint32_t>;

Letters random_letters(tests::Random& random, std::size_t most, std::size_t alphabet) {
  Letters letters(random.below(most + 1));
  for (std::uint32_t& letter : letters) letter = static_cast<std::uint32_t>(random.below(alphabet));
  return letters;
}

/// The length of the longest common subsequence, by dynamic programming.
std::size_t longest(const Letters& a, const Letters& b) {
  std::vector<std::vector<std::size_t>> best(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i < a.size(); ++i)
    for (std::size_t j = 0; j < b.size(); ++j)
      best[i + 1][j + 1] = a[i] == b[j] ? best[i][j] + 1 : std::max(best[i][j + 1], best[i + 1][j]);
  return best[a.size()][b.size()];
}

}  // namespace

TEST_CASE("pairs of a common subsequence are equal letters in ascending order") {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    tests::Random random{seed};
    const std::size_t alphabet = 1 + random.below(30);
    const Letters a = random_letters(random, 40, alphabet), b = random_letters(random, 40, alphabet);
    const auto pairs = common_subsequence(a, b);
    for (std::size_t i = 0; i < pairs.size(); ++i) {
      REQUIRE(a.at(pairs[i].first) == b.at(pairs[i].second));
      if (i > 0) REQUIRE((pairs[i - 1].first < pairs[i].first && pairs[i - 1].second < pairs[i].second));
    }
    REQUIRE(pairs.size() <= longest(a, b));
  }
}

TEST_CASE("a common subsequence of strings without unique letters is the longest") {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    tests::Random random{seed};
    Letters a = random_letters(random, 25, 3), b = random_letters(random, 25, 3);
    for (Letters* letters : {&a, &b}) letters->insert(letters->end(), {0, 9, 1, 9, 2, 0, 1, 2});  // each at least twice
    a.insert(a.begin(), {7, 7});  // no common end or beginning decides alone
    b.insert(b.begin(), {8, 8});
    REQUIRE(common_subsequence(a, b).size() == longest(a, b));
  }
}

TEST_CASE(
    "an insertion into a long string costs no pair but its own, and more edits than allowed cost only their part") {
  Letters a(100'000), b;
  for (std::uint32_t i = 0; i < a.size(); ++i) a[i] = i % 1000 == 0 ? i + 10 : i % 7;
  b = a;
  b.insert(b.begin() + 50'003, {5, 5, 123'456'789, 4});
  CHECK(common_subsequence(a, b).size() == a.size());
  const Letters all_a(3000, 1), all_b(3000, 2);
  Letters c{11}, d{11};
  c.insert(c.end(), all_a.begin(), all_a.end());
  d.insert(d.end(), all_b.begin(), all_b.end());
  c.push_back(12), d.push_back(12);
  CHECK(common_subsequence(c, d, 100).size() == 2);
}

}  // namespace tidepool::common_subsequence_test
