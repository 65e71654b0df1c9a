#include "tests/catch.hpp"

// Hidden: run by name to check that the test program exits with 1, and not with 4 (a skipped test), if 4 checks fail.
TEST_CASE("four checks fail", "[.fails]") {
  for (int i = 0; i < 4; ++i) CHECK(i < 0);
}
