#include "simulator/studies/sweep/remaining_time.hpp"

#include "tests/catch.hpp"

namespace tidepool::remaining_time_test {

TEST_CASE("the remaining time of a sweep is computed from the times of each kind of run") {
  RemainingTime remaining{1};
  for (int i = 0; i < 4; ++i) remaining.expect("lru");
  for (int i = 0; i < 3; ++i) remaining.expect("tide");
  CHECK_FALSE(remaining.at(0).has_value());
  remaining.begin("lru", 0, 0);
  remaining.end(0, 1);
  CHECK(remaining.at(1) == 6);  // 6 * 1 s: 3 of lru, and 3 of tide, which are assumed to take as long
  remaining.begin("tide", 1, 1);
  CHECK(remaining.at(51) == 153);  // 3 * 1 s, 50 s for the one that has run for 50 s, 2 * 50 s
  remaining.end(1, 101);
  CHECK(remaining.at(101) == 203);  // 3 * 1 s + 2 * 100 s; the mean of all runs would give 5 * 50.5 s
  for (std::size_t run = 2; run < 5; ++run) {
    remaining.begin("lru", run, 101);
    remaining.end(run, 102);
  }
  remaining.begin("tide", 5, 104);
  CHECK(remaining.at(134) == 170);  // 70 s for the current run, 100 s for the last one
}

TEST_CASE("a run that lasts longer than expected is assumed to take the same time again") {
  RemainingTime remaining{4};
  remaining.expect("lru");
  remaining.expect("tide");
  remaining.begin("lru", 0, 0);
  remaining.end(0, 1);
  remaining.begin("tide", 1, 1);
  CHECK(remaining.at(1) == 1);    // as long as lru
  CHECK(remaining.at(61) == 60);  // one run uses one thread of the four
  remaining.end(1, 121);
  CHECK(remaining.at(121) == 0);
}

}  // namespace tidepool::remaining_time_test
