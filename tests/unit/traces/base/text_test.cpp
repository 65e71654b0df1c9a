// Numbers as text for people.
#include "traces/base/text.hpp"

#include "tests/catch.hpp"

namespace tidepool::text_test {

TEST_CASE("a short number has three significant digits and a unit, and no exponent") {
  CHECK(short_number(0) == "0");
  CHECK(short_number(870) == "870");
  CHECK(short_number(999.4) == "999");
  CHECK(short_number(999.6) == "1 k");
  CHECK(short_number(12'345) == "12.3 k");
  CHECK(short_number(999'600) == "1 M");
  CHECK(short_number(4.9e6) == "4.9 M");
  CHECK(short_number(1.64e13) == "16400 G");
}

}  // namespace tidepool::text_test
