#include "simulator/sweep/remaining_time.hpp"

#include "tests/catch.hpp"

using namespace tidepool;

TEST_CASE("the remaining time of a sweep follows from the times of each kind of run") {
  RemainingTime remaining{1};
  for (int i = 0; i < 4; ++i) remaining.expect("lru");
  for (int i = 0; i < 3; ++i) remaining.expect("tide");
  CHECK_FALSE(remaining.at(0).has_value());
  remaining.begin("lru", 0, 0);
  remaining.end(0, 1);
  CHECK(remaining.at(1) == 6);  // 3 of lru, and 3 of tide, which are assumed to take as long: 6 * 1 s
  remaining.begin("tide", 1, 1);
  CHECK(remaining.at(51) == 153);  // 3 * 1 s, 50 s more of the one that has run for 50 s, and two as long as that
  remaining.end(1, 101);
  CHECK(remaining.at(101) == 203);  // 3 * 1 s + 2 * 100 s, where 7 runs in 101 s would give 5 * 50.5 s
  for (std::size_t run = 2; run < 5; ++run) {
    remaining.begin("lru", run, 101);
    remaining.end(run, 102);
  }
  remaining.begin("tide", 5, 104);
  CHECK(remaining.at(134) == 170);  // 70 s of the one that runs, 100 s of the last
}

TEST_CASE("a run that lasts longer than was expected is taken to last as long again") {
  RemainingTime remaining{4};
  remaining.expect("lru");
  remaining.expect("tide");
  remaining.begin("lru", 0, 0);
  remaining.end(0, 1);
  remaining.begin("tide", 1, 1);
  CHECK(remaining.at(1) == 1);    // as lru
  CHECK(remaining.at(61) == 60);  // on one thread, though there are four
  remaining.end(1, 121);
  CHECK(remaining.at(121) == 0);
}
