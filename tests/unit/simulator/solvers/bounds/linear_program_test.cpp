#include "simulator/solvers/bounds/linear_program.hpp"

#include <algorithm>
#include <atomic>
#include <random>

#include "tests/catch.hpp"

namespace tidepool::linear_program_test {

namespace {

constexpr double kNone = LinearProgram::kInfinity;

/// min -3x - 2y with x + y <= 4, x + 3y <= 6, x <= 3. The least value is -11, at (3, 1).
LinearProgram textbook(bool integer) {
  LinearProgram program;
  const auto add = [&](double upper, double cost) {
    return integer ? program.integer(0, upper, cost) : program.variable(0, upper, cost);
  };
  const std::uint32_t x = add(3, -3), y = add(10, -2);
  const std::uint32_t first = program.row(-kNone, 4), second = program.row(-kNone, 6);
  program.add(first, x, 1);
  program.add(first, y, 1);
  program.add(second, x, 1);
  program.add(second, y, 3);
  return program;
}

/// A knapsack: the largest value within the capacity. program() minimises the value times -1.
struct Knapsack {
  std::vector<int> value, weight;
  int capacity = 0;

  LinearProgram program(bool integer) const {
    LinearProgram result;
    const std::uint32_t row = result.row(0, capacity);
    for (std::size_t i = 0; i < value.size(); ++i)
      result.add(row, integer ? result.integer(0, 1, -value[i]) : result.variable(0, 1, -value[i]), weight[i]);
    return result;
  }
  int best() const {
    int most = 0;
    for (unsigned chosen = 0; chosen < 1U << value.size(); ++chosen) {
      int sum = 0, load = 0;
      for (std::size_t i = 0; i < value.size(); ++i)
        if (chosen >> i & 1U) sum += value[i], load += weight[i];
      if (load <= capacity) most = std::max(most, sum);
    }
    return most;
  }
};

}  // namespace

TEST_CASE("a linear program is solved, and its multipliers prove the value") {
  const LinearProgram program = textbook(false);
  const LinearProgram::Solution solution = program.solve();
  REQUIRE(solution.status == LinearProgram::Status::kOptimal);
  CHECK(solution.objective == Approx(-11));
  CHECK(solution.x.at(0) == Approx(3));
  CHECK(solution.x.at(1) == Approx(1));
  CHECK(solution.bound <= -11);
  CHECK(solution.bound == Approx(-11).epsilon(1e-9));
}

TEST_CASE("any multipliers bound a linear program from below") {
  const LinearProgram program = textbook(false);
  CHECK(program.dual_bound(std::vector<double>{0, 0}) == Approx(-29));    // x = 3, y = 10
  CHECK(program.dual_bound(std::vector<double>{-2, 0}) == Approx(-11));   // -8 from the row, and -1 * 3 from x
  CHECK(program.dual_bound(std::vector<double>{-3, 0}) == Approx(-12));   // another multiplier gives a weaker bound
  CHECK(program.dual_bound(std::vector<double>{+5, +5}) == Approx(-29));  // no row has a lower side: proves nothing
}

TEST_CASE("a program without a solution and an unbounded one are distinguished") {
  LinearProgram infeasible;
  infeasible.add(infeasible.row(5, kNone), infeasible.variable(0, 4, 1), 1);
  CHECK(infeasible.solve().status == LinearProgram::Status::kInfeasible);
  LinearProgram unbounded;
  unbounded.add(unbounded.row(0, kNone), unbounded.variable(0, kNone, -1), 1);
  CHECK(unbounded.solve().status == LinearProgram::Status::kUnbounded);
}

TEST_CASE("rows and variables without entries are allowed") {
  LinearProgram program;
  program.variable(2, 7, 3);
  program.row(-1, 1);
  const LinearProgram::Solution solution = program.solve();
  REQUIRE(solution.status == LinearProgram::Status::kOptimal);
  CHECK(solution.objective == Approx(6));
}

TEST_CASE("integer programs agree with brute force, and relaxed ones are not above them") {
  std::mt19937 random{7};
  for (int round = 0; round < 60; ++round) {
    Knapsack knapsack;
    int total = 0;
    for (int i = 0; i < 12; ++i) {
      knapsack.value.push_back(static_cast<int>(1 + random() % 50));
      knapsack.weight.push_back(static_cast<int>(1 + random() % 30));
      total += knapsack.weight.back();
    }
    knapsack.capacity = static_cast<int>(random() % static_cast<unsigned>(total));
    const LinearProgram::Solution integer = knapsack.program(true).solve();
    const LinearProgram::Solution relaxed = knapsack.program(false).solve();
    REQUIRE(integer.status == LinearProgram::Status::kOptimal);
    CHECK(integer.objective == Approx(-knapsack.best()));
    CHECK(integer.bound == Approx(-knapsack.best()));
    CHECK(relaxed.bound <= -knapsack.best() + 1e-6);
  }
}

TEST_CASE("a program that is told to stop gives a valid bound") {
  std::mt19937 random{3};
  Knapsack knapsack;
  for (int i = 0; i < 12; ++i) {
    knapsack.value.push_back(static_cast<int>(1 + random() % 50));
    knapsack.weight.push_back(static_cast<int>(1 + random() % 30));
  }
  knapsack.capacity = 60;
  const std::atomic<bool> stop{true};
  for (const bool integer : {false, true})
    CHECK(knapsack.program(integer).solve({.time = {}, .stop = &stop}).bound <= -knapsack.best() + 1e-6);
}

}  // namespace tidepool::linear_program_test
