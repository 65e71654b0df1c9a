#include "simulator/solvers/packing/greedy.hpp"

#include <algorithm>
#include <numeric>
#include <optional>
#include <random>

#include "simulator/planner.hpp"
#include "tests/catch.hpp"

namespace tidepool::greedy_test {

namespace {

std::vector<std::uint32_t> as_given(const Instance& instance) {
  std::vector<std::uint32_t> order(instance.items.size());
  std::iota(order.begin(), order.end(), 0);
  return order;
}

/// Placement by definition, in O(n^2): the lowest or smallest hole between the earlier items that live together with an
/// item.
std::vector<Bytes> place_plainly(const Instance& instance, std::span<const std::uint32_t> order, Fit fit) {
  const auto together = [&](std::uint32_t a, std::uint32_t b) {
    for (const Interval& one : instance.lives(instance.items[a]))
      for (const Interval& other : instance.lives(instance.items[b]))
        if (one.lower < other.upper && other.lower < one.upper) return true;
    return false;
  };
  std::vector<Bytes> offsets(instance.items.size());
  std::vector<std::uint32_t> placed;
  for (std::uint32_t i = 0; i < instance.items.size(); ++i)
    if (instance.items[i].fixed) {
      offsets[i] = *instance.items[i].fixed;
      placed.push_back(i);
    }
  for (const std::uint32_t i : order) {
    const Item& item = instance.items[i];
    if (item.fixed || item.size == Bytes{}) continue;
    std::vector<std::uint32_t> near;
    for (const std::uint32_t j : placed)
      if (instance.items[j].size > Bytes{} && together(i, j)) near.push_back(j);
    std::sort(near.begin(), near.end(), [&](std::uint32_t a, std::uint32_t b) { return offsets[a] < offsets[b]; });
    Bytes top, best_room = kNoLimit;
    std::optional<Bytes> best;
    for (const std::uint32_t j : near) {
      const Bytes offset = round_up(top, item.alignment);
      if (offset + item.size <= offsets[j] && (fit == Fit::kFirst ? !best : offsets[j] - top < best_room)) {
        best = offset;
        best_room = offsets[j] - top;
      }
      top = std::max(top, offsets[j] + instance.items[j].size);
    }
    offsets[i] = best.value_or(round_up(top, item.alignment));
    placed.push_back(i);
  }
  return offsets;
}

/// Items with gaps and alignments, some of 0 bytes. A third of the instances have fixed items that do not overlap.
Instance random_instance(std::uint64_t seed) {
  std::mt19937_64 random{seed};
  const auto below = [&](std::uint64_t n) { return static_cast<std::int64_t>(random() % n); };
  Instance instance;
  const std::int64_t count = 1 + below(60), span = 2 + below(80);
  for (std::int64_t i = 0; i < count; ++i) {
    std::vector<Interval> lives;
    for (std::int64_t at = below(static_cast<std::uint64_t>(span)); lives.empty() || (at < span && below(4) == 0);
         at += 1 + below(9)) {
      const std::int64_t upper = at + 1 + below(12);
      lives.push_back({at, upper});
      at = upper;
    }
    Item& item = instance.add(Bytes{below(20)}, lives);
    item.alignment = Bytes{std::int64_t{1} << below(4)};
  }
  if (seed % 3 == 0) {
    const auto offsets = place_plainly(instance, as_given(instance), Fit::kFirst);
    for (std::size_t i = 0; i < offsets.size(); i += 5) instance.items[i].fixed = offsets[i];
  }
  return instance;
}

}  // namespace

TEST_CASE("first fit takes the lowest hole and best fit the smallest") {
  // Two fixed items leave holes [0, 8) and [10, 14) below the open end; an item of 4 bytes comes last.
  Instance instance;
  instance.add(2_B, 0, 9).fixed = 8_B;
  instance.add(2_B, 0, 9).fixed = 14_B;
  instance.add(4_B, 3, 5);
  CHECK(place_in_order(instance, as_given(instance), Fit::kFirst)[2] == 0_B);
  CHECK(place_in_order(instance, as_given(instance), Fit::kBest)[2] == 10_B);
}

TEST_CASE("a hole that is too small at the required alignment is skipped") {
  Instance instance;
  instance.add(6_B, 0, 9).fixed = 0_B;
  instance.add(2_B, 0, 9).fixed = 11_B;
  instance.add(4_B, 3, 5).alignment = 8_B;  // [8, 12) would overlap
  instance.add(3_B, 3, 5).alignment = 8_B;  // [8, 11) fits exactly
  const auto offsets = place_in_order(instance, as_given(instance), Fit::kFirst);
  CHECK(offsets[2] == 16_B);
  CHECK(offsets[3] == 8_B);
}

TEST_CASE("an item with a gap finds a place that is free in all of its intervals") {
  Instance instance;
  instance.add(4_B, 0, 3);
  instance.add(4_B, 6, 9).fixed = 4_B;
  const std::vector<Interval> lives{{1, 2}, {7, 8}};
  instance.add(4_B, lives);
  instance.add(4_B, 3, 6);  // lives only between the others
  const auto offsets = place_in_order(instance, as_given(instance), Fit::kFirst);
  CHECK(offsets[2] == 8_B);
  CHECK(offsets[3] == 0_B);
}

TEST_CASE("places between many others are those of the definition") {
  // Fixed items with holes between them, which the others fill or divide: lists of hundreds of ranges, then of few.
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    std::mt19937_64 random{seed};
    const auto below = [&](std::uint64_t n) { return static_cast<std::int64_t>(random() % n); };
    Instance instance;
    Bytes offset;
    for (int i = 0; i < 700; ++i) {
      instance.add(Bytes{1 + below(9)}, 0, 1 + below(3)).fixed = offset += Bytes{1 + below(20)};
      offset += instance.items.back().size;
    }
    for (int i = 0; i < 500; ++i) {
      const std::int64_t lower = below(3);
      instance.add(Bytes{1 + below(25)}, lower, lower + 1 + below(2));
    }
    for (const Fit fit : {Fit::kFirst, Fit::kBest})
      CHECK(place_in_order(instance, as_given(instance), fit) == place_plainly(instance, as_given(instance), fit));
  }
}

TEST_CASE("an index of addresses gives the places of the definition") {
  for (std::uint64_t seed = 1; seed <= 600; ++seed) {
    const Instance instance = random_instance(seed);
    check(instance);
    for (const Fit fit : {Fit::kFirst, Fit::kBest}) {
      const auto offsets = place_in_order(instance, as_given(instance), fit);
      INFO("seed " << seed);
      REQUIRE(offsets == place_plainly(instance, as_given(instance), fit));
      REQUIRE(verified_height(instance, offsets) == height_of(instance, offsets));
    }
  }
}

}  // namespace tidepool::greedy_test
