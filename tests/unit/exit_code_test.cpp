#include "tests/catch.hpp"

// Hidden. It is run by name, to check the exit code of the test program, which is four for a skipped test.
TEST_CASE("four checks fail", "[.fails]") {
  for (int i = 0; i < 4; ++i) CHECK(i < 0);
}
