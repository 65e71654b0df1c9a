#include "simulator/engine/iteration_watch.hpp"

#include <vector>

#include "tests/catch.hpp"

namespace tidepool::iteration_watch_test {

TEST_CASE("a run goes on if all watches let it, and one that has ended is not asked") {
  const std::vector<Totals> done(3);
  std::size_t asked = 0;
  CHECK(IterationWatch::proceed(done));
  const IterationWatch outer{[&](std::span<const Totals> each) { return asked += each.size(), asked < 9; }};
  {
    bool lets = true;
    const IterationWatch inner{[&](std::span<const Totals>) { return lets; }};
    CHECK(IterationWatch::proceed(done));
    lets = false;
    CHECK_FALSE(IterationWatch::proceed(done));
    CHECK(asked == 3);
  }
  CHECK(IterationWatch::proceed(done));
  CHECK_FALSE(IterationWatch::proceed(done));
}

}  // namespace tidepool::iteration_watch_test
