#include "simulator/solvers/packing/search/coarse_search.hpp"

#include <algorithm>
#include <limits>

#include "tests/catch.hpp"
#include "tests/random_instance.hpp"

namespace tidepool::coarse_search_test {

namespace {

constexpr std::uint64_t kMany = std::numeric_limits<std::uint32_t>::max();
constexpr auto kPatient = [](std::uint64_t) { return false; };

std::int64_t load_of(const PackingProblem& problem) {
  const std::vector<std::int64_t> loads = problem.loads();
  return *std::max_element(loads.begin(), loads.end());
}

}  // namespace

TEST_CASE("small pieces fit into the holes that a search for the large ones leaves") {
  // 6 B, then 4 B beside 4 B, of which one lives on. The peak is 8 B. The small pieces (1 B each) go into the holes.
  Instance instance;
  instance.add(6_B, 0, 2);
  instance.add(4_B, 2, 4);
  instance.add(4_B, 3, 6);
  for (const int lower : {0, 1, 2, 4}) instance.add(1_B, lower, lower + 1);
  const PackingProblem problem = reduce(instance, Sections{instance});
  CoarseSearch search{problem};
  const auto found =
      search.run(0.5, {.capacity = 8, .below = 9, .cells = kMany, .visits = 100}, SearchRule{}, kPatient);
  REQUIRE(found);
  for (std::size_t i = 0; i < found->size(); ++i) CHECK((*found)[i] + problem.pieces[i].size <= 8);
}

TEST_CASE("layouts of a coarse search have no conflict between any pair of buffers, and are below the wanted height") {
  int found_any = 0;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    const tests::InstanceKind kind{.gaps = seed % 2 == 0, .alignments = seed % 3 == 0, .fixed = seed % 4 == 0};
    const Instance instance = tests::random_instance(seed, 20 + seed % 60, kind);
    const PackingProblem problem = reduce(instance, Sections{instance});
    const std::int64_t load = load_of(problem), below = load * 3 / 2;
    CoarseSearch search{problem};
    for (const double share : {0.0, 0.2, 0.6, 1.0}) {
      INFO("seed " << seed << ", share " << share);
      const auto found = search.run(share, {.capacity = load, .below = below, .cells = kMany, .visits = 1'000},
                                    SearchRule{}, kPatient);
      if (!found) continue;
      ++found_any;
      std::vector<Bytes> bytes(instance.items.size());
      for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = instance.items[i].fixed.value_or(0_B);
      for (std::size_t i = 0; i < found->size(); ++i) {
        CHECK((*found)[i] + problem.pieces[i].size < below);
        bytes[problem.pieces[i].item] = Bytes{(*found)[i] * problem.unit};
      }
      CHECK(tests::fault_of(instance, bytes).empty());
    }
  }
  CHECK(found_any > 200);
}

TEST_CASE("a coarse search that asks whether to end passes the work of the whole run so far") {
  const Instance instance = tests::random_instance(3, 200, {});
  const PackingProblem problem = reduce(instance, Sections{instance});
  CoarseSearch search{problem};
  const std::int64_t load = load_of(problem);
  for (int run = 0; run < 2; ++run) {
    const std::uint64_t before = search.work();
    std::uint64_t last = 0;
    search.run(0.5, {.capacity = 2 * load, .below = 3 * load, .cells = kMany, .visits = 100}, SearchRule{},
               [&](std::uint64_t work) {
                 CHECK(work >= last);
                 last = work;
                 return false;
               });
    CHECK(last > 0);
    CHECK(last <= search.work() - before);
  }
}

TEST_CASE("a coarse search that is interrupted at once finds no layout") {
  const Instance instance = tests::random_instance(3, 200, {});
  const PackingProblem problem = reduce(instance, Sections{instance});
  CoarseSearch search{problem};
  const std::int64_t load = load_of(problem);
  CHECK_FALSE(search.run(0.5, {.capacity = 2 * load, .below = 3 * load, .cells = kMany, .visits = 100}, SearchRule{},
                         [](std::uint64_t) { return true; }));
}

}  // namespace tidepool::coarse_search_test
