// Sizes in the notations of people and of other tools.
#include "traces/base/quantity.hpp"

#include "tests/catch.hpp"

namespace tidepool::quantity_test {

TEST_CASE("sizes are read with decimals, and with one letter for powers of 1024") {
  CHECK(parse_bytes("512MiB") == 512_MiB);
  CHECK(parse_bytes("80GB") == Bytes{80'000'000'000});
  CHECK(parse_bytes("12.5GiB") == 12_GiB + 512_MiB);
  CHECK(parse_bytes("16G") == 16_GiB);
  CHECK(parse_bytes("1T") == 1024_GiB);
  CHECK(parse_bytes("2.5kB") == 2500_B);
  CHECK(parse_bytes("0.0001kB") == 0_B);  // fractions of a byte are dropped
  CHECK(parse_bytes("9223372036854775807B") == Bytes{9223372036854775807});
}

TEST_CASE("a size that is printed can be read back") {
  for (const Bytes size : {0_B, 1023_B, 4_KiB, 459_MiB + 300_KiB, 16_GiB, Bytes{2'000'000'000'000'000'000}}) {
    const Bytes back = parse_bytes(to_text(size));
    CHECK(to_text(back) == to_text(size));
  }
}

TEST_CASE("large sizes and times are printed without exponents") {
  CHECK(to_text(Bytes{2'000'000'000'000'000'000}) == "1818989 TiB");
  CHECK(to_text(Nanos{14'400'000'000'000}) == "14400 s");
  CHECK(to_text(Nanos{-14'400'000'000'000}) == "-14400 s");
  CHECK(to_text(Nanos{9'999'600'000'000}) == "10000 s");
  CHECK(to_text(Nanos{999'990'000}) == "1000 ms");
}

TEST_CASE("rates are rounded to whole bytes per second") {
  CHECK(parse_rate("1001MB/s") == BytesPerSecond{1'001'000'000});
  CHECK(parse_rate("1.001GB/s") == BytesPerSecond{1'001'000'000});  // as a double, 1000999999.9999999
  CHECK(parse_rate("0.0011kB/s") == BytesPerSecond{1});
}

TEST_CASE("text that is not a size is refused") {
  for (const char* text : {"", "1xb", "7", "-1GiB", "-0.5GiB", "1.5B", "4KiB ", "1  GiB", "1e3MiB", "infGiB", "nanGiB",
                           "0x1.8GiB", "9000000T", "9223372036854775808B", "GiB"})
    CHECK_THROWS_WITH(
        parse_bytes(text),
        "'" + std::string{text} +
            "' is not a size; expected a number and B, kB, MB, GB, TB, KiB, MiB, GiB, TiB, K, M, G or T, as in 512MiB");
}

}  // namespace tidepool::quantity_test
