#include "traces/import/period.hpp"

#include <string_view>
#include <vector>

#include "tests/catch.hpp"

namespace tidepool::period_test {

namespace {

Period find(std::string_view events) {
  const std::vector<std::uint32_t> symbols(events.begin(), events.end());
  return find_period(symbols);
}

std::string times(int count, std::string_view part) {
  std::string text;
  for (int i = 0; i < count; ++i) text += part;
  return text;
}

}  // namespace

TEST_CASE("the period of a loop is the length of one iteration, and the result also says at which events it repeats") {
  const Period period = find("xyz" + times(6, "abacdd") + "w");
  CHECK(period.length == 6);
  CHECK(period.runs == std::vector{PeriodicRun{3, 39}});
}

TEST_CASE("a sequence of equal events within an iteration is not a loop") {
  const Period period = find(times(4, "abcdeffffffff"));
  CHECK(period.length == 13);
  CHECK(period.runs == std::vector{PeriodicRun{0, 52}});
}

TEST_CASE("the iterations of three epochs are found, not the epochs") {
  const std::string epoch = times(10, "abcdefgh") + "testing";
  const Period period = find(times(3, epoch));
  CHECK(period.length == 8);
  CHECK(period.runs == std::vector{PeriodicRun{0, 80}, PeriodicRun{87, 167}, PeriodicRun{174, 254}});
}

TEST_CASE("events that do not repeat have no period") {
  CHECK(find("").length == 0);
  CHECK(find("a").length == 0);
  CHECK(find("abcdefghijklmnopqrstuvwxyz").length == 0);
}

}  // namespace tidepool::period_test
