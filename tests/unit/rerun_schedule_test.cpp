#include "policies/planning/search/rerun_schedule.hpp"

#include "tests/catch.hpp"

using namespace tidepool;

namespace {

/// a (2 bytes) | b reads a | c reads b | d reads c and a and holds nothing. With all kept, 4 bytes while c runs; with a
/// dropped behind b and made again for d, 3.
RerunProblem four_ops(std::int64_t room) {
  return {.inputs = {{}, {0}, {1}, {0, 2}}, .cost = {7, 1, 1, 1}, .bytes = {2, 1, 1, 0}, .room = room, .most_runs = 0};
}

RerunSearch little() { return {.steps = 100'000, .enough = 0, .seed = 1}; }

}  // namespace

TEST_CASE("a schedule runs nothing again where everything fits, and the least where it does not") {
  const auto all = search_reruns(four_ops(4), little());
  REQUIRE(all);
  CHECK(all->again == 0);
  CHECK(all->runs == std::vector<std::uint32_t>{0, 1, 2, 3});
  const auto less = search_reruns(four_ops(3), little());
  REQUIRE(less);
  CHECK(less->again == 7);
  CHECK(less->runs == std::vector<std::uint32_t>{0, 1, 2, 0, 3});
}

TEST_CASE("there is no schedule where an op and what it reads do not fit, or an op would run too often") {
  CHECK_FALSE(search_reruns(four_ops(2), little()));
  RerunProblem once = four_ops(3);
  once.most_runs = 1;
  CHECK_FALSE(search_reruns(once, little()));
}

TEST_CASE("a search of schedules gives the same answer again") {
  // Each of 40 ops reads the one before it and the one as far from the end, so that many schedules cost about the same.
  RerunProblem problem{.inputs = {}, .cost = {}, .bytes = {}, .room = 14, .most_runs = 0};
  for (std::uint32_t i = 0; i < 40; ++i) {
    problem.inputs.emplace_back();
    if (i > 20) problem.inputs.back().push_back(39 - i);
    if (i > 0) problem.inputs.back().push_back(i - 1);
    problem.cost.push_back(1 + i * 7 % 5);
    problem.bytes.push_back(1);
  }
  const auto found = search_reruns(problem, little());
  REQUIRE(found);
  CHECK(found->again > 0);
  CHECK(search_reruns(problem, little())->runs == found->runs);
}
