// Tables of measured collectives, and interpolation between their rows.
#include "simulator/studies/ranks/collective_table.hpp"

#include "tests/catch.hpp"
#include "tests/refusal.hpp"
#include "tests/shared_data.hpp"

namespace tidepool::collective_table_test {

using tests::refusal;

namespace {

CollectiveTable table(const std::string& text, const std::string& gpu = "") {
  return CollectiveTable{Input{"t.csv", text}, gpu};
}

const std::string kSmall =
    "gpu,n_gpus,size_bytes,time_in_place_ns\n"
    "a100,2,1000,50.0\na100,2,2000,70.4\na100,2,4000,100\nv100,2,1000,90\n";

}  // namespace

TEST_CASE("a table of collectives gives its rows, and interpolates between them") {
  const CollectiveTable a100 = table(kSmall, "a100");
  CHECK(a100.all_reduce(2, 1000_B) == 50_ns);
  CHECK(a100.all_reduce(2, 2000_B) == 70_ns);
  CHECK(a100.all_reduce(2, 1500_B) == 60_ns);
  CHECK(a100.all_reduce(2, 3000_B) == 85_ns);
  CHECK(a100.all_reduce(2, 1_B) == 50_ns);      // below the first row
  CHECK(a100.all_reduce(2, 8000_B) == 200_ns);  // beyond the last row, at its 40 bytes per ns
  CHECK_FALSE(a100.all_reduce(3, 1000_B));
  CHECK(table(kSmall, "v100").all_reduce(2, 1000_B) == 90_ns);
}

TEST_CASE("a table of collectives gives its rows even if a larger size takes less time") {
  const CollectiveTable falls = table("gpu,n_gpus,size_bytes,time_in_place_ns\nx,2,1000,400\nx,2,2000,300\n");
  CHECK(falls.all_reduce(2, 1000_B) == 400_ns);
  CHECK(falls.all_reduce(2, 1500_B) == 350_ns);
  CHECK(falls.all_reduce(2, 1995_B) == 301_ns);  // 300.5 ns
  CHECK(falls.all_reduce(2, 2000_B) == 300_ns);
}

TEST_CASE("a table of collectives is refused with the line and the reason") {
  CHECK(refusal([] { table(""); }) == "t.csv: is empty; expected a table with the columns gpu, n_gpus, size_bytes");
  CHECK(refusal([] { table("gpu,size_bytes\n"); }) == "t.csv:1: no column 'n_gpus'; the file has gpu, size_bytes");
  CHECK(refusal([] { table("gpu,n_gpus,size_bytes,time_in_place_ns\n"); }) ==
        "t.csv: no rows; expected times of collectives");
  CHECK(refusal([] { table(kSmall + "a100,1,5,6\n"); }) ==
        "t.csv:6: n_gpus is '1'; expected a whole number from 2 to 2^50");
  CHECK(refusal([] { table(kSmall + "a100,2,1125899906842625,6\n"); }) ==
        "t.csv:6: size_bytes is '1125899906842625'; expected a whole number from 1 to 2^50");
  CHECK(refusal([] { table(kSmall + "a100,2,5,-6\n"); }) ==
        "t.csv:6: the time is '-6'; expected a number of ns above 0 and at most 2^50");
  CHECK(refusal([] { table(kSmall + "a100,2,5,1e16\n"); }) ==
        "t.csv:6: the time is '1e16'; expected a number of ns above 0 and at most 2^50");
  CHECK(refusal([] { table(kSmall + "a100,2\n"); }) == "t.csv:6: 2 columns; expected at least 3");
  CHECK(refusal([] { table(kSmall + "a100,2,1000,7\n"); }) ==
        "t.csv:6: 1000 bytes on 2 devices a second time; expected each size once");
  CHECK(refusal([] { table(kSmall, "h100"); }) == "t.csv: no device 'h100'; the file has a100, v100");
  CHECK(refusal([] { table(kSmall); }) == "t.csv: has a100, v100; expected one of them to be named, as in t.csv:a100");
}

TEST_CASE("a real table of all-reduces gives the measured times") {
  const auto path = tests::shared_data("multigpu/vtrain_allreduce_lut.csv.gz");
  if (!path) return;
  const CollectiveTable v100 = read_collective_table(*path + ":v100");
  CHECK(v100.all_reduce(8, 1_MiB) == 78'610_ns);
  CHECK(v100.all_reduce(8, 1024_MiB) == 13'983'000_ns);
  CHECK(read_collective_table(*path + ":a100").all_reduce(8, 1_MiB) == 92'150_ns);
}

}  // namespace tidepool::collective_table_test
