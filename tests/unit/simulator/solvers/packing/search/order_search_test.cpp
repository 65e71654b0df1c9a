#include "simulator/solvers/packing/search/order_search.hpp"

#include <algorithm>

#include "tests/catch.hpp"
#include "tests/cut_rectangle.hpp"
#include "tests/dense_instance.hpp"
#include "tests/random_instance.hpp"

namespace tidepool::order_search_test {

namespace {

constexpr std::int64_t kAny = std::int64_t{1} << 60;
constexpr auto kPatient = [](std::uint64_t) { return false; };

std::vector<Bytes> in_bytes(const Instance& instance, const PackingProblem& problem,
                            const std::vector<std::int64_t>& offsets) {
  std::vector<Bytes> bytes(instance.items.size());
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = instance.items[i].fixed.value_or(0_B);
  for (std::size_t i = 0; i < offsets.size(); ++i) bytes[problem.pieces[i].item] = Bytes{offsets[i] * problem.unit};
  return bytes;
}

/// The lowest layout of `passes` passes.
std::int64_t lowest(const PackingProblem& problem, int passes, std::int64_t target) {
  OrderSearch search{problem};
  std::int64_t height = kAny;
  for (int pass = 0; pass < passes; ++pass)
    if (const auto found = search.run(target, height, kPatient)) {
      height = 0;
      for (std::size_t i = 0; i < found->size(); ++i) height = std::max(height, (*found)[i] + problem.pieces[i].size);
    }
  return height;
}

}  // namespace

TEST_CASE("pieces of the fullest section come first, so that no larger piece elsewhere is in their way") {
  // At 2 live 4 + 3 + 3 = 10 B, the load. By size, 6 B at 0 come first, so 4 B lie on them, at [6, 10), and the 3 B
  // that live beside these and beside 4 B of [4, 5) find no hole. By the fullest section and life, 4 + 3 B lie at the
  // bottom.
  Instance instance;
  instance.add(6_B, 0, 1);
  instance.add(4_B, 4, 5);
  instance.add(4_B, 0, 4);
  instance.add(3_B, 2, 5);
  instance.add(3_B, 2, 3);
  const PackingProblem problem = reduce(instance, Sections{instance});
  CHECK(lowest(problem, 1, 10) == 13);  // by size
  CHECK(lowest(problem, 3, 10) == 10);
}

TEST_CASE("layouts of passes have no conflict between any pair of buffers, and are below the wanted height") {
  int found_any = 0;
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    const tests::InstanceKind kind{.gaps = seed % 2 == 0, .alignments = seed % 3 == 0, .fixed = seed % 4 == 0};
    const Instance instance = tests::random_instance(seed, 20 + seed % 60, kind);
    const PackingProblem problem = reduce(instance, Sections{instance});
    OrderSearch search{problem};
    std::int64_t below = kAny;
    for (int pass = 0; pass < 40; ++pass) {
      INFO("seed " << seed << ", pass " << pass);
      const auto found = search.run(below - 1, below, kPatient);
      if (!found) continue;
      ++found_any;
      std::int64_t height = 0;
      for (std::size_t i = 0; i < found->size(); ++i) height = std::max(height, (*found)[i] + problem.pieces[i].size);
      CHECK(height < below);
      below = height;
      CHECK(tests::fault_of(instance, in_bytes(instance, problem, *found)).empty());
    }
  }
  CHECK(found_any > 150);
}

TEST_CASE("mended orders end lower than all orders by keys") {
  const Instance instance = tests::cut_rectangle(1, 100, 1 << 16);
  const PackingProblem problem = reduce(instance, Sections{instance});
  const std::vector<std::int64_t> loads = problem.loads();
  const std::int64_t load = *std::max_element(loads.begin(), loads.end());
  const std::int64_t start = lowest(problem, 20, load), mended = lowest(problem, 120, load);
  CHECK(start > load);
  CHECK(mended < start);
  CHECK(lowest(problem, 120, load) == mended);
}

TEST_CASE("an interrupted pass gives no layout, and its work counts") {
  const Instance instance = tests::dense_instance(2'000);
  const PackingProblem problem = reduce(instance, Sections{instance});
  OrderSearch search{problem};
  CHECK_FALSE(search.run(0, kAny, [](std::uint64_t) { return true; }));
  const std::uint64_t cut = search.work();
  CHECK(cut > 0);
  REQUIRE(search.run(0, kAny, kPatient));
  CHECK(search.work() - cut > 4 * cut);
}

}  // namespace tidepool::order_search_test
