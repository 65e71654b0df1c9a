#include "simulator/solvers/packing/search/ejection_search.hpp"

#include "simulator/solvers/packing/greedy.hpp"
#include "tests/catch.hpp"
#include "tests/random_instance.hpp"

namespace tidepool::ejection_search_test {

namespace {

constexpr auto kPatient = [](std::uint64_t) { return false; };

std::vector<Bytes> in_bytes(const Instance& instance, const PackingProblem& problem,
                            const std::vector<std::int64_t>& offsets) {
  std::vector<Bytes> bytes(instance.items.size());
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = instance.items[i].fixed.value_or(0_B);
  for (std::size_t i = 0; i < offsets.size(); ++i) bytes[problem.pieces[i].item] = Bytes{offsets[i] * problem.unit};
  return bytes;
}

}  // namespace

TEST_CASE("a piece that fits in no hole takes the place of one that fits elsewhere") {
  // The piece of 2 B at 1 leaves holes of 1 and 2 B in 5 B. The one of 3 B fits after the first has moved.
  Instance instance;
  instance.add(2_B, 0, 1);
  instance.add(3_B, 0, 1);
  const PackingProblem problem = reduce(instance, Sections{instance});
  EjectionSearch search{problem};
  std::vector<std::int64_t> offsets{1, -1};
  REQUIRE(search.run(offsets, 5, kPatient));
  CHECK(std::min(offsets[0], offsets[1]) == 0);
  CHECK(tests::fault_of(instance, in_bytes(instance, problem, offsets)).empty());
}

TEST_CASE("a small piece beside one of 2^55 B is in the way") {
  // Above the piece of 2^55 B, that of 1 B leaves holes of 1 B below and above it: one of 2 B fits if it moves.
  constexpr std::int64_t kLarge = std::int64_t{1} << 55;
  Instance instance;
  for (const Bytes size : {Bytes{kLarge}, 1_B, 2_B}) instance.add(size, 0, 1);
  const PackingProblem problem = reduce(instance, Sections{instance});
  EjectionSearch search{problem};
  std::vector<std::int64_t> offsets{0, kLarge + 1, -1};
  REQUIRE(search.run(offsets, kLarge + 3, [](std::uint64_t work) { return work > 1'000'000; }));
  CHECK(tests::fault_of(instance, in_bytes(instance, problem, offsets)).empty());
}

TEST_CASE("a search fails at once if a piece, or the end of its fixed place, exceeds the capacity") {
  Instance instance;
  instance.add(5_B, 0, 1);
  instance.add(2_B, 1, 2).fixed = 3_B;
  const PackingProblem problem = reduce(instance, Sections{instance});
  EjectionSearch search{problem};
  std::vector<std::int64_t> offsets{-1, 3};
  CHECK_FALSE(search.run(offsets, 4, kPatient));
  CHECK(offsets == std::vector<std::int64_t>{-1, 3});
}

TEST_CASE("layouts that ejections have lowered have no conflict between any pair, and are the same for the same seed") {
  int lowered = 0;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    const tests::InstanceKind kind{.gaps = seed % 2 == 0, .alignments = seed % 3 == 0, .fixed = seed % 4 == 0};
    const Instance instance = tests::random_instance(seed, 20 + seed % 30, kind);
    const Sections sections{instance};
    const PackingProblem problem = reduce(instance, sections);
    const std::vector<Bytes> before =
        place_in_order(instance, sections, in_order(instance, PackingOrder::kLife), Fit::kFirst);
    std::vector<std::int64_t> offsets;
    std::int64_t height = 0;
    for (const PackingProblem::Piece& piece : problem.pieces) {
      offsets.push_back(before[piece.item].count() / problem.unit);
      height = std::max(height, offsets.back() + piece.size);
    }
    const std::int64_t capacity = height * 9 / 10;
    const auto impatient = [](std::uint64_t work) { return work > 1'000'000; };
    std::vector<std::int64_t> again = offsets;
    const std::vector<std::int64_t> given = offsets;
    const bool found = EjectionSearch{problem}.run(offsets, capacity, impatient);
    INFO("seed " << seed);
    CHECK(EjectionSearch{problem}.run(again, capacity, impatient) == found);
    CHECK(again == offsets);
    if (!found) {
      CHECK(offsets == given);
      continue;
    }
    ++lowered;
    const std::vector<Bytes> bytes = in_bytes(instance, problem, offsets);
    CHECK(tests::fault_of(instance, bytes).empty());
    for (std::size_t i = 0; i < offsets.size(); ++i) CHECK(offsets[i] + problem.pieces[i].size <= capacity);
  }
  CHECK(lowered > 40);
}

}  // namespace tidepool::ejection_search_test
