#include "tests/catch.hpp"

// Hidden: it is run by name, to see how the test program ends. Four is what a skipped test ends with.
TEST_CASE("four checks fail", "[.fails]") {
  for (int i = 0; i < 4; ++i) CHECK(i < 0);
}
