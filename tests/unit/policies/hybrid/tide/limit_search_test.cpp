// The search for a limit of counted bytes at which places fit.
#include "policies/hybrid/tide/limit_search.hpp"

#include "tests/catch.hpp"

namespace tidepool::limit_search_test {

TEST_CASE("a limit falls by three quarters of the excess until it is low enough, and then the interval is halved") {
  LimitSearch limits{1'000_B, 2_B};
  limits.is_high(100_B);
  CHECK(limits.limit() == 925_B);
  limits.is_high(1_B);
  CHECK(limits.limit() == 917_B);  // falls by at least four steps of 2 B
  limits.is_low();
  CHECK(limits.limit() == 921_B);
  limits.is_high(1_B);
  CHECK(limits.limit() == 919_B);
  CHECK_FALSE(limits.done());
  limits.is_low();
  CHECK(limits.done());
}

TEST_CASE("a limit that was too low rises halfway to the lowest one that was too high") {
  LimitSearch limits{1'000_B, 2_B};
  limits.is_high(80_B);
  limits.is_low();
  CHECK(limits.limit() == 970_B);
  limits.is_high(10_B);
  CHECK(limits.limit() == 955_B);
  limits.is_low();
  CHECK(limits.limit() == 962_B);
  CHECK_FALSE(limits.done());
}

TEST_CASE("a first limit that is low enough is the last") {
  LimitSearch limits{1'000_B, 2_B};
  limits.is_low();
  CHECK(limits.done());
}

}  // namespace tidepool::limit_search_test
