#include "policies/planning/search/rerun_schedule.hpp"

#include "tests/catch.hpp"

namespace tidepool::rerun_schedule_test {

namespace {

/// a (2 B) | b reads a | c reads b | d reads c and a and has 0 B. If all are kept, 4 B are live while c runs. If a is
/// dropped after b and recomputed for d, 3 B.
RerunProblem four_ops(std::int64_t room) {
  return {.inputs = {{}, {0}, {1}, {0, 2}}, .cost = {7, 1, 1, 1}, .bytes = {2, 1, 1, 0}, .room = room, .most_runs = 0};
}

RerunSearch little() { return {.steps = 100'000, .enough = 0, .seed = 1}; }

}  // namespace

TEST_CASE("a schedule has no reruns if everything fits, and the cheapest ones otherwise") {
  const auto all = search_reruns(four_ops(4), little());
  REQUIRE(all);
  CHECK(all->again == 0);
  CHECK(all->runs == std::vector<std::uint32_t>{0, 1, 2, 3});
  const auto less = search_reruns(four_ops(3), little());
  REQUIRE(less);
  CHECK(less->again == 7);
  CHECK(less->runs == std::vector<std::uint32_t>{0, 1, 2, 0, 3});
}

TEST_CASE("there is no schedule if an op and its inputs do not fit, or if an op would run too often") {
  CHECK_FALSE(search_reruns(four_ops(2), little()));
  RerunProblem once = four_ops(3);
  once.most_runs = 1;
  CHECK_FALSE(search_reruns(once, little()));
}

TEST_CASE("a repeated search of schedules gives the same answer") {
  // Each of 40 ops reads the one before it; from 21 on, op i also reads op 39 - i. Because of this, many schedules cost
  // about the same.
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

}  // namespace tidepool::rerun_schedule_test
