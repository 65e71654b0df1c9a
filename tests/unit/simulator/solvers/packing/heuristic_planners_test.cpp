#include <fmt/format.h>

#include "simulator/registry.hpp"
#include "simulator/solvers/packing/greedy.hpp"
#include "tests/catch.hpp"

namespace tidepool::heuristic_planners_test {

namespace {

Layout plan(const std::string& text, const Instance& instance) {
  const Spec spec{text};
  const PoolInfo& info = find_pool(spec.name);
  return info.plan(Options{info.name, info.options, spec.options})->plan(instance, {});
}

/// Sizes 4, 3 and 2. The first and the last are never live together; the second lives together with both.
Instance three() {
  Instance instance;
  instance.add(4_B, 0, 2);
  instance.add(3_B, 1, 4);
  instance.add(2_B, 2, 5);
  return instance;
}

}  // namespace

TEST_CASE("a pass places each buffer in its turn, into the lowest or the smallest hole") {
  CHECK(plan("one-pass(order=size,fit=first)", three()).offsets == std::vector<Bytes>{0_B, 4_B, 0_B});
  CHECK(plan("one-pass(order=birth,fit=first)", three()).offsets == std::vector<Bytes>{0_B, 4_B, 0_B});
  // Lifetimes are 2, 3 and 3, areas 8, 9 and 6.
  CHECK(plan("one-pass(order=life,fit=first)", three()).offsets == std::vector<Bytes>{3_B, 0_B, 3_B});
  CHECK(plan("one-pass(order=area,fit=first)", three()).offsets == std::vector<Bytes>{3_B, 0_B, 3_B});

  // Holes of 5 B at 0 and of 3 B at 7; the last buffer has 3 B.
  Instance holes;
  holes.add(5_B, 0, 1);
  holes.add(2_B, 0, 4);
  holes.add(3_B, 0, 1);
  holes.add(4_B, 0, 4);
  holes.add(3_B, 2, 3);
  for (std::size_t i = 0; i < 4; ++i) holes.items[i].fixed = std::vector<Bytes>{0_B, 5_B, 7_B, 10_B}[i];
  CHECK(plan("one-pass(fit=first)", holes).offsets[4] == 0_B);
  CHECK(plan("one-pass(fit=best)", holes).offsets[4] == 7_B);
}

TEST_CASE("the best of ten passes is the lowest of them") {
  Instance instance;  // by birth, 2 + 3 + 4 = 9 B are stacked; other orders need 7 B
  instance.add(2_B, 0, 2);
  instance.add(3_B, 1, 3);
  instance.add(4_B, 2, 4);
  Bytes least = kNoLimit;
  for (const char* order : {"size", "size-life", "area", "life", "birth"})
    for (const char* fit : {"first", "best"})
      least = std::min(least, plan(fmt::format("one-pass(order={},fit={})", order, fit), instance).height);
  CHECK(plan("one-pass(order=birth)", instance).height == 9_B);
  CHECK(least == 7_B);
  CHECK(plan("one-pass", instance).height == least);
  CHECK(plan("one-pass", instance).optimal());
}

TEST_CASE("XLA takes the lower one of a layout by size and a layout by lifetime") {
  // By size, both items of 4 B are at 0, the long-lived one of 1 B is above them, and the other one of 1 B above that:
  // 6 B. By lifetime, the long-lived one is at 0, those of 4 B are at 0 and 1, and the other one of 1 B is at 4: 5 B.
  Instance instance;
  instance.add(1_B, 1, 3);
  instance.add(4_B, 0, 2);
  instance.add(4_B, 4, 5);
  instance.add(1_B, 2, 6);
  CHECK(plan("xla(order=spatial)", instance).offsets == std::vector<Bytes>{5_B, 0_B, 0_B, 4_B});
  CHECK(plan("xla(order=temporal)", instance).offsets == std::vector<Bytes>{4_B, 0_B, 1_B, 0_B});
  CHECK(plan("xla", instance).height == 5_B);
}

TEST_CASE("buffers that are not live together share an object, which grows with them") {
  // Position 1 has the most bytes: 4 and 3 are live. Each gets an object; 2 fits into the object of 4.
  CHECK(place_by_breadth(three()) == std::vector<Bytes>{0_B, 4_B, 0_B});
  // There are three positions. At position 2, no object is large enough, so the largest free one grows.
  Instance grows;
  grows.add(2_B, 0, 1);
  grows.add(1_B, 0, 1);
  grows.add(3_B, 1, 2);
  grows.items[2].size = 2_B;
  grows.add(3_B, 2, 3);
  // 3 B are live at 0, 2 B at 1, 3 B at 2. The first two get objects of 2 and 1 B; then the one of 2 B grows to 3 B.
  CHECK(place_by_breadth(grows) == std::vector<Bytes>{0_B, 3_B, 0_B, 0_B});
}

TEST_CASE("objects are placed above fixed items, and aligned") {
  Instance instance;
  instance.add(3_B, 0, 5).fixed = 2_B;
  instance.add(4_B, 0, 2).alignment = 4_B;
  instance.add(1_B, 3, 4);
  CHECK(place_by_breadth(instance) == std::vector<Bytes>{2_B, 8_B, 5_B});
}

TEST_CASE("hill climbing swaps buffers under the highest one until the height is the peak of live bytes") {
  // The instance of XLA's test above: first fit by size needs 6 B; at most 5 B are live at once.
  Instance instance;
  instance.add(1_B, 1, 3);
  instance.add(4_B, 0, 2);
  instance.add(4_B, 4, 5);
  instance.add(1_B, 2, 6);
  CHECK(plan("tvm-hill-climb(attempts=1)", instance).height == 6_B);
  CHECK(plan("tvm-hill-climb", instance).height == 5_B);
  CHECK(plan("tvm-hill-climb(attempts=1)", three()).offsets == std::vector<Bytes>{0_B, 4_B, 0_B});
}

TEST_CASE("hill climbing of no buffers gives an empty layout") {
  CHECK(plan("tvm-hill-climb", {}).height == 0_B);
  Instance empty;
  empty.add(0_B, 0, 1);
  CHECK(plan("tvm-hill-climb", empty).offsets == std::vector<Bytes>{0_B});
}

}  // namespace tidepool::heuristic_planners_test
