// Selective checkpointing of one region: the outputs that its ops keep within a limit.
#include "policies/remat/auto_sac/selective.hpp"

#include "tests/catch.hpp"
#include "tests/random_trace.hpp"

namespace tidepool::selective_test {

namespace {

using Kept = std::vector<bool>;

Bytes memory_of(const SelectiveRegion& region, const Kept& kept) {
  Bytes sum;
  for (std::size_t i = 0; i < kept.size(); ++i)
    if (kept[i]) sum += region.ops[i].memory;
  return sum;
}

Nanos again(const SelectiveRegion& region, const Kept& kept) {
  Nanos sum;
  for (std::size_t i = 0; i < kept.size(); ++i)
    if (!kept[i]) sum += region.ops[i].runtime;
  return sum;
}

/// Whether a selection obeys the rules, checked op by op.
bool obeys(const SelectiveRegion& region, const Kept& kept) {
  std::optional<bool> random;
  for (std::size_t i = 0; i < kept.size(); ++i) {
    const SelectiveOp& op = region.ops[i];
    if (op.view && kept[i]) return false;
    if (op.updates && (*op.updates == i ? !kept[i] : kept[i] != kept[*op.updates])) return false;
    if (op.random && region.keep_random && !kept[i]) return false;
    if (op.random && random.value_or(kept[i]) != kept[i]) return false;
    if (op.random) random = kept[i];
  }
  return true;
}

std::optional<Nanos> least_of_all(const SelectiveRegion& region, Bytes limit) {
  std::optional<Nanos> least;
  for (std::uint32_t bits = 0; bits >> region.ops.size() == 0; ++bits) {
    Kept kept;
    for (std::size_t i = 0; i < region.ops.size(); ++i) kept.push_back((bits >> i & 1) != 0);
    if (!obeys(region, kept) || memory_of(region, kept) > limit) continue;
    least = std::min(least.value_or(again(region, kept)), again(region, kept));
  }
  return least;
}

}  // namespace

TEST_CASE("the best selection is the best of all subsets that obey the rules") {
  int infeasible = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    tests::Random random{seed};
    SelectiveRegion region{.ops = {}, .keep_random = seed % 3 == 0};
    for (std::size_t i = 0; i < 9; ++i) {
      SelectiveOp op{.memory = Bytes{static_cast<std::int64_t>(random.below(30))},
                     .runtime = Nanos{static_cast<std::int64_t>(random.below(30))},
                     .view = random.below(8) == 0,
                     .random = random.below(5) == 0,
                     .updates = {}};
      if (random.below(6) == 0) op.updates = random.below(i + 1);
      region.ops.push_back(op);
    }
    for (const double budget : {0.0, 0.2, 0.5, 1.0}) {
      INFO("seed " << seed << " budget " << budget);
      const Bytes limit = share_of(region, budget);
      const std::optional<Nanos> least = least_of_all(region, limit);
      const std::optional<Kept> kept = keep_best(region, limit);
      REQUIRE(kept.has_value() == least.has_value());
      infeasible += !kept;
      if (!kept) continue;
      CHECK(obeys(region, *kept));
      CHECK(memory_of(region, *kept) <= limit);
      CHECK(again(region, *kept) == *least);
    }
  }
  CHECK(infeasible > 0);
}

TEST_CASE("the greedy selection drops the most bytes per time first, and stops as soon as the rest fits") {
  // The ops have 10, 6 and 5 B for 1 ns each. Within 20 B, the first is dropped and 11 B are kept. Within 10 B, only
  // one op can be kept, and each of the three saves 1 ns. The greedy choice keeps the last one.
  const SelectiveRegion region{.ops = {{.memory = 10_B, .runtime = 1_ns, .updates = {}},
                                       {.memory = 6_B, .runtime = 1_ns, .updates = {}},
                                       {.memory = 5_B, .runtime = 1_ns, .updates = {}}}};
  CHECK(keep_greedily(region, 21_B) == Kept{true, true, true});
  CHECK(keep_greedily(region, 20_B) == Kept{false, true, true});
  CHECK(keep_greedily(region, 11_B) == Kept{false, true, true});
  CHECK(keep_greedily(region, 10_B) == Kept{false, false, true});
  CHECK(keep_greedily(region, 4_B) == Kept{false, false, false});
}

TEST_CASE("the greedy selection drops ops without time first, never keeps views, and drops groups as a whole") {
  const SelectiveRegion region{.ops = {{.memory = 1_B, .runtime = 0_ns, .updates = {}},
                                       {.memory = 100_B, .runtime = 1_ns, .updates = {}},
                                       {.memory = 0_B, .runtime = 9_ns, .view = true, .updates = {}},
                                       {.memory = 100_B, .runtime = 9_ns, .updates = 1}}};
  CHECK(keep_greedily(region, 201_B) == Kept{true, true, false, true});
  CHECK(keep_greedily(region, 200_B) == Kept{false, true, false, true});
  CHECK(keep_greedily(region, 199_B) == Kept{false, false, false, false});
}

TEST_CASE("in the greedy selection, tensors that are always kept count twice against the limit") {
  const SelectiveRegion region{
      .ops = {{.memory = 10_B, .runtime = 1_ns, .updates = 0}, {.memory = 5_B, .runtime = 1_ns, .updates = {}}}};
  CHECK(keep_greedily(region, 25_B) == Kept{true, true});
  CHECK(keep_greedily(region, 24_B) == Kept{true, false});
}

}  // namespace tidepool::selective_test
