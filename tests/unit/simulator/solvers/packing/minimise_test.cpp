#include "simulator/solvers/packing/minimise.hpp"

#include <algorithm>
#include <atomic>
#include <ctime>
#include <numeric>
#include <vector>

#include "simulator/solvers/packing/greedy.hpp"
#include "tests/catch.hpp"
#include "tests/cut_rectangle.hpp"
#include "tests/dense_instance.hpp"
#include "tests/effort.hpp"
#include "tests/random_instance.hpp"

namespace tidepool::minimise_test {

namespace {

/// Tries all orders of offsets: every item gets the lowest offset above the items before it.
class Trials {
 public:
  explicit Trials(const Instance& instance) : instance_{instance}, offsets_(instance.items.size(), Bytes{-1}) {}

  Bytes least() {
    Bytes height;
    for (const Item& item : instance_.items)
      if (item.size == Bytes{} && item.fixed) height = std::max(height, *item.fixed);
    go_on(height, Bytes{});
    return best_;
  }

 private:
  bool together(std::size_t a, std::size_t b) const {
    for (const Interval& one : instance_.lives(instance_.items[a]))
      for (const Interval& other : instance_.lives(instance_.items[b]))
        if (one.lower < other.upper && other.lower < one.upper) return true;
    return false;
  }

  void go_on(Bytes height, Bytes last) {
    if (height >= best_) return;
    bool all = true;
    for (std::size_t i = 0; i < offsets_.size(); ++i) {
      const Item& item = instance_.items[i];
      if (offsets_[i] >= Bytes{} || item.size == Bytes{}) continue;
      all = false;
      Bytes offset;
      for (std::size_t j = 0; j < offsets_.size(); ++j)
        if (offsets_[j] >= Bytes{} && together(i, j)) offset = std::max(offset, offsets_[j] + instance_.items[j].size);
      if (item.fixed && *item.fixed < std::max(offset, last)) return;
      offset = item.fixed.value_or(round_up(offset, item.alignment));
      if (offset < last) continue;
      offsets_[i] = offset;
      go_on(std::max(height, offset + item.size), offset);
      offsets_[i] = Bytes{-1};
    }
    if (all) best_ = height;
  }

  const Instance& instance_;
  std::vector<Bytes> offsets_;
  Bytes best_ = kNoLimit;
};

/// An instance with a load of 6 B, and an item of 1 B that is fixed at 6.
Instance pinned() {
  Instance instance;
  instance.add(3_B, 0, 2);
  instance.add(2_B, 0, 3);
  instance.add(3_B, 2, 5);
  instance.add(2_B, 3, 5);
  instance.add(1_B, 1, 2).fixed = 6_B;
  return instance;
}

}  // namespace

TEST_CASE("more effort never gives a higher layout or a lower bound") {
  int lower = 0;
  for (std::uint64_t seed = 1; seed <= (tests::kOptimised ? 12 : 3); ++seed) {
    const Instance instance =
        seed % 3 == 0 ? tests::cut_rectangle(seed, 40 + 10 * seed, 1 << 16)
        : seed % 3 == 1
            ? tests::dense_instance(static_cast<std::int64_t>(100 * seed))
            : tests::random_instance(seed, 60 * seed, {.gaps = true, .alignments = true, .fixed = seed % 2 == 0});
    Layout before = minimise(instance, {}, 0);
    for (const double effort : {0.5, 1.0, 2.0, 4.0, 8.0}) {
      const Layout layout = minimise(instance, {}, effort);
      INFO("seed " << seed << ", effort " << effort);
      CHECK(verified_height(instance, layout.offsets) == layout.height);
      CHECK(layout.height <= before.height);
      CHECK(layout.lower_bound >= before.lower_bound);
      lower += layout.height < before.height ? 1 : 0;
      before = layout;
    }
  }
  CHECK(lower > 5);
}

TEST_CASE("the height of a complete search is the least of all trials") {
  for (std::uint64_t seed = 1; seed <= 2'000; ++seed) {
    const tests::InstanceKind kind{.gaps = seed % 2 == 0, .alignments = seed % 3 == 0, .fixed = seed % 4 == 0};
    const Instance instance = tests::random_instance(seed, 1 + seed % 7, kind);
    const Layout layout = minimise(instance, {}, 100);
    INFO("seed " << seed);
    REQUIRE(verified_height(instance, layout.offsets) == layout.height);
    REQUIRE(layout.height == Trials{instance}.least());
    REQUIRE(layout.optimal());
  }
}

TEST_CASE("a search stops at a height that is low enough, and its bound is no higher than it has proved") {
  int higher = 0;
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    const tests::InstanceKind kind{.gaps = seed % 2 == 0, .alignments = seed % 3 == 0, .fixed = seed % 4 == 0};
    const Instance instance = tests::random_instance(seed, 3 + seed % 5, kind);
    const Bytes least = Trials{instance}.least();
    for (const Bytes enough : {std::max(least - 1_B, 0_B), least, least + 40_B}) {
      const Layout layout = minimise(instance, {.enough = enough}, 100);
      INFO("seed " << seed << ", the least is " << least.count() << ", enough " << enough.count());
      REQUIRE(verified_height(instance, layout.offsets) == layout.height);
      REQUIRE(layout.height <= std::max(enough, least));
      REQUIRE(layout.lower_bound <= least);
      higher += layout.height > least ? 1 : 0;
    }
  }
  CHECK(higher > 0);
}

TEST_CASE("a fixed item bounds the height from below") {
  const Layout layout = minimise(pinned(), {}, 100);
  CHECK(layout.height == 7_B);  // the load is 6 B, but the item fixed at 6 ends at 7
  CHECK(layout.proof == "fixed");
  CHECK(layout.optimal());
  CHECK(layout.offsets[4] == 6_B);
}

TEST_CASE("a capacity below the least height is infeasible, not a time-out") {
  const Instance instance = pinned();
  CHECK(minimise(instance, {.capacity = 7_B}, 100).outcome == Outcome::kOk);
  const Layout refused = minimise(instance, {.capacity = 6_B}, 100);
  CHECK(refused.outcome == Outcome::kInfeasible);
  CHECK(refused.lower_bound == 7_B);
}

TEST_CASE("a search that is stopped returns its best layout and proves nothing") {
  const Instance instance = tests::random_instance(5, 400, {});
  const std::atomic<bool> stop{true};
  const Layout layout = minimise(instance, {.capacity = load_of(instance), .stop = &stop}, 1e9);
  CHECK(verified_height(instance, layout.offsets) == layout.height);
  CHECK(layout.lower_bound == load_of(instance));
  CHECK(layout.outcome == (layout.optimal() ? Outcome::kOk : Outcome::kTimeLimit));
}

TEST_CASE("a search keeps its time limit to a tenth, beside the time of its first layout") {
  // Times of the processor, which does not count while the machine does other work.
  const auto seconds = [](const auto& call) {
    const std::clock_t before = std::clock();
    call();
    return static_cast<double>(std::clock() - before) / CLOCKS_PER_SEC;
  };
  for (const std::int64_t buffers : {1'000, 20'000}) {
    const Instance instance = tests::dense_instance(buffers);
    const std::atomic<bool> stop{true};
    const double first = seconds([&] { minimise(instance, {.stop = &stop}, 0); });
    for (const double limit : {0.1, 0.5}) {
      Layout layout;
      const double spent = seconds([&] { layout = minimise(instance, {.time = Nanos{std::int64_t(limit * 1e9)}}, 0); });
      INFO(buffers << " buffers, limit " << limit << " s, first layout after " << first << " s");
      CHECK(spent <= 1.1 * limit + 2 * first + (tests::kOptimised ? 0.05 : 0.5));
      CHECK(verified_height(instance, layout.offsets) == layout.height);
    }
  }
}

TEST_CASE("an instance without items has height 0") {
  const Layout layout = minimise({}, {}, 100);
  CHECK(layout.height == Bytes{});
  CHECK(layout.optimal());
}

TEST_CASE("a search of a large dense instance ends much lower than one pass") {
  if (!tests::optimised()) return;
  const Instance instance = tests::dense_instance(10'000);
  const Bytes load = load_of(instance);
  Bytes one_pass = kNoLimit;
  for (const PackingOrder order : kPackingOrders)
    for (const Fit fit : {Fit::kFirst, Fit::kBest})
      one_pass = std::min(one_pass, height_of(instance, place_in_order(instance, in_order(instance, order), fit)));
  const Layout layout = minimise(instance, {}, kDefaultEffort);
  CHECK(verified_height(instance, layout.offsets) == layout.height);
  CHECK((layout.height - load) * 2 <= one_pass - load);  // without repairs, a search is no lower than one pass
}

TEST_CASE("a rectangle that was cut into pieces is put together again") {
  for (std::uint64_t seed = 1; seed <= (tests::kOptimised ? 20 : 3); ++seed) {
    const Instance instance = tests::cut_rectangle(seed, 10 + 5 * seed, 1 << 16);
    const Layout layout = minimise(instance, {}, 100);
    INFO("seed " << seed);
    CHECK(tests::fault_of(instance, layout.offsets).empty());
    CHECK(layout.height == Bytes{1 << 16});
    CHECK(layout.optimal());
  }
}

TEST_CASE("layouts of rectangles with many pieces are as high as the rectangle or higher, and the same each time") {
  const Instance instance = tests::cut_rectangle(5, 1'500, 1 << 20);
  const Layout layout = minimise(instance, {}, 5);
  CHECK(tests::fault_of(instance, layout.offsets).empty());
  CHECK(layout.height >= Bytes{1 << 20});
  CHECK(layout.lower_bound == Bytes{1 << 20});
  CHECK(minimise(instance, {}, 5).offsets == layout.offsets);
}

}  // namespace tidepool::minimise_test
