#include "tests/catch.hpp"

// Hidden: run by name to check that the test program exits with 1, and not with 4 (a skipped test), if 4 checks fail.
namespace tidepool::exit_code_test {

TEST_CASE("four checks fail", "[.fails]") {
  for (int i = 0; i < 4; ++i) CHECK(i < 0);
}

}  // namespace tidepool::exit_code_test
