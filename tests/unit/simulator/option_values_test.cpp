#include "simulator/option_values.hpp"

#include "simulator/registry.hpp"
#include "tests/catch.hpp"
#include "traces/base/error.hpp"

namespace tidepool::option_values_test {

namespace {

Options given(const std::string& unit, const std::string& value) {
  return Options{"coop", {{"x", value, unit, ""}}, {}};
}

/// Makes a pool or policy, as a run does.
void make(const Spec& spec) {
  for (const PolicyInfo* info : all_policies())
    if (info->name == spec.name) info->make({info->name, info->options, spec.options});
  for (const PoolInfo* info : all_pools())
    if (info->name == spec.name) info->make({info->name, info->options, spec.options});
}

}  // namespace

TEST_CASE("a whole number lies in its range, ends included, and may be negative") {
  const auto value = [](const std::string& text) { return count_of<int>("coop", given("number", text), "x", 3, -1); };
  CHECK(value("-1") == -1);
  CHECK(value("3") == 3);
  CHECK(value("2e0") == 2);
  for (const std::string text : {"-2", "4", "0.5", "1e30", "-1e30"})
    CHECK_THROWS_WITH(value(text), "coop: option 'x' is '" + text + "'; expected a whole number from -1 to 3");
}

TEST_CASE("a number lies between 0 and its limit, both included") {
  const auto value = [](const std::string& text) { return number_of("coop", given("number", text), "x", 2.5); };
  CHECK(value("0") == 0);
  CHECK(value("2.5") == 2.5);
  for (const std::string text : {"-0.1", "2.6", "1e30"})
    CHECK_THROWS_WITH(value(text), "coop: option 'x' is '" + text + "'; expected 0 to 2.5");
}

TEST_CASE("a size may have to be at least one byte") {
  CHECK(size_of("coop", given("bytes", "1B"), "x") == 1_B);
  CHECK_THROWS_WITH(size_of("coop", given("bytes", "0 B"), "x"), "coop: option 'x' is '0 B'; expected at least 1B");
}

TEST_CASE("counts that are no whole numbers, or beyond their range, are refused") {
  CHECK_THROWS_WITH(make("pooch(rooms=10)"), "pooch: option 'rooms' is '10'; expected a whole number from 1 to 9");
  CHECK_THROWS_WITH(make("pooch(exhaustive=0.5)"),
                    "pooch: option 'exhaustive' is '0.5'; expected a whole number from 0 to 12");
  CHECK_THROWS_WITH(make("tvm-hill-climb(attempts=0)"),
                    "tvm-hill-climb: option 'attempts' is '0'; expected a whole number from 1 to 1000000000");
  CHECK_THROWS_WITH(make("swapadvisor(effort=0)"),
                    "swapadvisor: option 'effort' is '0'; expected a whole number from 1 to 1000000000");
  CHECK_THROWS_WITH(make("tide(effort=1e30)"),
                    "tide: option 'effort' is '1e30'; expected a whole number from 0 to 10000000");
  for (const std::string name : {"pooch", "autoswap", "tflms", "order-peak"})
    CHECK_THROWS_WITH(make(name + "(effort=-1)"),
                      name + ": option 'effort' is '-1'; expected a whole number from 0 to 1000000000");
  CHECK_THROWS_WITH(make("grappler-swap(passes=-1)"),
                    "grappler-swap: option 'passes' is '-1'; expected a whole number from 0 to 1000000000");
}

TEST_CASE("an effort that is a number is refused beyond its range") {
  CHECK_THROWS_WITH(make("tide-remat(effort=1e13)"), "tide-remat: option 'effort' is '1e13'; expected 0 to 1000000000");
  CHECK_THROWS_WITH(make("tide-pool(effort=-1)"), "tide-pool: option 'effort' is '-1'; expected 0 to 1000000000");
}

TEST_CASE("sizes whose multiples a pool or policy uses are at least one byte") {
  CHECK_THROWS_WITH(make("swapadvisor(granule=0B)"), "swapadvisor: option 'granule' is '0B'; expected at least 1B");
  CHECK_THROWS_WITH(make("cuda-async(granule=0B)"), "cuda-async: option 'granule' is '0B'; expected at least 1B");
  CHECK_THROWS_WITH(make("two-ended(alignment=0B)"), "two-ended: option 'alignment' is '0B'; expected at least 1B");
}

}  // namespace tidepool::option_values_test
