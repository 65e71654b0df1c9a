#include "traces/import/lifetimes.hpp"

#include "simulator/solvers/packing/lifetimes.hpp"
#include "tests/catch.hpp"
#include "traces/base/error.hpp"
#include "traces/import/importer.hpp"

namespace tidepool::lifetimes_test {

namespace {

LifetimeTable read(std::string_view text) { return read_lifetimes(Input{"t.csv", text}, LifetimeColumns::kAll); }

}  // namespace

TEST_CASE("alignments, offsets and gaps are read, empty fields have no effect, hints are ignored") {
  const LifetimeTable table = read(
      "id,lower,upper,size,gaps,offset,alignment,hint\n"
      "a,-4,9,7,-2-1 3-5,16,8,99\n"
      "b,0,1,2,,,,\n");
  CHECK(table.constrained);
  REQUIRE(table.rows.size() == 2);
  CHECK(
      table.rows[0] ==
      Lifetime{.id = "a", .lower = -4, .upper = 9, .size = 7, .alignment = 8, .offset = 16, .gaps = {{-2, 1}, {3, 5}}});
  CHECK(table.rows[1] == Lifetime{.id = "b", .lower = 0, .upper = 1, .size = 2});
  CHECK_FALSE(read("id,lower,upper,size,hint\na,0,1,2,7\n").constrained);
}

TEST_CASE("rows become items that do not live during their gaps") {
  const Instance instance = instance_of(read("id,lower,upper,size,gaps,offset,alignment\n"
                                             "a,0,9,7,2-3 3-5,16,8\nb,0,9,2,0-4,,\nc,1,2,3,,,48\n"),
                                        1_B);
  Instance expected;
  Item& a = expected.add(7_B, std::vector<Interval>{{0, 2}, {5, 9}});
  a.alignment = 8_B;
  a.fixed = 16_B;
  expected.add(2_B, 4, 9);
  expected.add(3_B, 1, 2).alignment = 48_B;
  CHECK(instance == expected);
}

TEST_CASE("an alignment for all items is combined with those of the table") {
  const LifetimeTable table = read("id,lower,upper,size,alignment\na,0,9,7,48\nb,0,9,0,1\n");
  const Instance instance = instance_of(table, 32_B);
  CHECK(instance.items[0].alignment == 96_B);
  CHECK(instance.items[0].size == 32_B);
  CHECK(instance.items[1].alignment == 32_B);
  CHECK(instance.items[1].size == 32_B);
  const LifetimeTable large = read("id,lower,upper,size,alignment\na,0,9,7,2305843009213693951\n");
  try {
    instance_of(large, 512_B);
    FAIL("no message");
  } catch (const InputError& error) {
    CHECK(std::string{error.what()} ==
          "buffer 0: alignments of 2305843009213693951 B and 512 B have no common multiple below 2^61 B");
  }
}

TEST_CASE("a table is known by its header, also after blank lines") {
  CHECK(find_importer(Input{"t", "\n \r\nid,lower,upper,size\n"}, "auto").name == "csv");
}

}  // namespace tidepool::lifetimes_test
