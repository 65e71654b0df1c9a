#include "simulator/solvers/packing/search/window_search.hpp"

#include <algorithm>

#include "simulator/solvers/packing/minimise.hpp"
#include "tests/catch.hpp"
#include "tests/cut_rectangle.hpp"
#include "tests/random_instance.hpp"

namespace tidepool::window_search_test {

namespace {

PackingProblem problem_of(const Instance& instance) { return reduce(instance, Sections{instance}); }

WindowSearch::Answer search(WindowSearch& windows, std::int64_t capacity) {
  return windows.run(capacity, [](std::uint64_t) { return false; });
}

}  // namespace

TEST_CASE("a clipped problem has the pieces of its window, with the parts of their lifetimes inside it") {
  Instance instance;
  instance.add(2_B, 0, 2);  // sections 0 and 1
  instance.add(3_B, 0, 1);
  instance.add(5_B, 1, 2);
  instance.add(7_B, 2, 3);  // section 2
  const PackingProblem part = clipped(problem_of(instance), {1, 3});
  REQUIRE(part.pieces.size() == 3);  // the second item lives only in section 0
  CHECK(part.pieces[0].item == 0);
  CHECK(part.pieces[2].item == 3);
  CHECK(part.loads() == std::vector<std::int64_t>{2 + 5, 7});
}

TEST_CASE("windows grow to a layout of least height, and never refute a height for which a layout exists") {
  int found = 0, none = 0;
  for (std::uint64_t seed = 1; seed <= 2'000; ++seed) {
    const tests::InstanceKind kind{.gaps = seed % 2 == 0, .alignments = seed % 3 == 0, .fixed = seed % 4 == 0};
    const Instance instance = tests::random_instance(seed, 2 + seed % 7, kind);
    const PackingProblem problem = problem_of(instance);
    if (problem.pieces.empty()) continue;
    Bytes least;  // the least height of the items with bytes
    const Layout layout = minimise(instance, {}, 100);
    REQUIRE(layout.optimal());
    for (const PackingProblem::Piece& piece : problem.pieces)
      least = std::max(least, layout.offsets[piece.item] + instance.items[piece.item].size);
    INFO("seed " << seed);
    WindowSearch windows{problem};
    const auto answer = search(windows, layout.height.count() / problem.unit);
    CHECK(answer != WindowSearch::Answer::kNone);
    if (answer == WindowSearch::Answer::kFound) {
      std::vector<Bytes> offsets = layout.offsets;
      for (std::size_t i = 0; i < problem.pieces.size(); ++i)
        offsets[problem.pieces[i].item] = Bytes{windows.offsets()[i] * problem.unit};
      CHECK(tests::fault_of(instance, offsets).empty());
      ++found;
    }
    if (least != layout.height) continue;  // an item of 0 B is fixed above all others
    WindowSearch below{problem};
    const auto lower = search(below, layout.height.count() / problem.unit - 1);
    CHECK(lower != WindowSearch::Answer::kFound);
    none += lower == WindowSearch::Answer::kNone ? 1 : 0;
  }
  CHECK(found > 1'900);
  CHECK(none > 1'500);
}

TEST_CASE("windows of a cut rectangle grow to the rectangle, with the same layout each time") {
  const Instance instance = tests::cut_rectangle(3, 60, 1 << 16);
  const PackingProblem problem = problem_of(instance);
  WindowSearch one{problem}, other{problem};
  REQUIRE(search(one, (1 << 16) / problem.unit) == WindowSearch::Answer::kFound);
  REQUIRE(search(other, (1 << 16) / problem.unit) == WindowSearch::Answer::kFound);
  CHECK(one.offsets() == other.offsets());
}

}  // namespace tidepool::window_search_test
