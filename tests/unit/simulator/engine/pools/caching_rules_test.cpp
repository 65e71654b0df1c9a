#include "simulator/engine/pools/caching_rules.hpp"

#include "simulator/engine/pools/caching_pool.hpp"
#include "tests/catch.hpp"
#include "tests/unit/pool_fixture.hpp"

namespace tidepool::caching_rules_test {

TEST_CASE("requests are rounded up to multiples of 512 B, and the least is 512 B") {
  const CachingConfig config;
  CHECK(rounded_request(config, 0_B) == 512_B);
  CHECK(rounded_request(config, 512_B) == 512_B);
  CHECK(rounded_request(config, 513_B) == 1'024_B);
  CHECK(rounded_request(config, 1_MiB + 1_B) == 1_MiB + 512_B);
}

TEST_CASE("segments have 2 MiB for requests up to 1 MiB, 20 MiB below 10 MiB, and multiples of 2 MiB from there on") {
  const CachingConfig config;
  CHECK(segment_for(config, 1_MiB) == 2_MiB);
  CHECK(segment_for(config, 1_MiB + 512_B) == 20_MiB);
  CHECK(segment_for(config, 10_MiB - 512_B) == 20_MiB);
  CHECK(segment_for(config, 10_MiB) == 10_MiB);
  CHECK(segment_for(config, 10_MiB + 512_B) == 12_MiB);
  CachingConfig smaller;
  smaller.large_segment_size = 12_MiB;
  CHECK(segment_for(smaller, 2_MiB) == 12_MiB);
  CHECK(segment_for(smaller, 12_MiB + 512_B) == 14_MiB);
}

TEST_CASE("with divisions, requests are rounded up to a fraction of the interval between two powers of two") {
  // In PyTorch's documentation, 4 divisions round 1200 B up to 1280 = 1024 + 256 B. But only requests above 4 * 512 B
  // are rounded in this way.
  CachingConfig config;
  config.roundup_power2_divisions.fill(4);
  CHECK(rounded_request(config, 2'048_B) == 2'048_B);
  CHECK(rounded_request(config, 2'049_B) == 2'560_B);
  CHECK(rounded_request(config, 1'200_B) == 1'536_B);  // not above 4 * 512 B: rounded to 512 B
  CHECK(rounded_request(config, 4_MiB) == 4_MiB);
  CHECK(rounded_request(config, 4_MiB + 1_B) == 5_MiB);
  CHECK(rounded_request(config, 7_MiB + 1_B) == 8_MiB);
  config.roundup_power2_divisions.fill(1);
  CHECK(rounded_request(config, 4_MiB + 1_B) == 4_MiB + 512_B);
}

TEST_CASE(
    "the largest power of two within a request chooses the divisions, and the last ones are for 32 GiB and more") {
  CachingConfig config;
  config.roundup_power2_divisions[0] = 2;   // everything below 2 MiB
  config.roundup_power2_divisions[1] = 4;   // 2 to 4 MiB
  config.roundup_power2_divisions[15] = 8;  // from 32 GiB
  CHECK(rounded_request(config, 513_KiB) == 768_KiB);
  CHECK(rounded_request(config, 1_MiB + 1_B) == 1_MiB + 512_KiB);
  CHECK(rounded_request(config, 2_MiB + 1_B) == 2_MiB + 512_KiB);
  CHECK(rounded_request(config, 4_MiB + 1_B) == 4_MiB + 512_B);
  CHECK(rounded_request(config, 64_GiB + 1_B) == 72_GiB);
}

TEST_CASE("a list of divisions names sizes in MiB, as in PyTorch's own test of its settings") {
  // c10/test/core/AllocatorConfig_test.cpp: 64 and 128 MiB have 8, 256 MiB 16, 512 MiB 1, 1 GiB 0, 2 GiB 8, 4 GiB 2.
  const Spec spec{"pytorch(roundup_power2_divisions=[128:8,256:16,512:1,2048:8,>:2])"};
  const CachingConfig config = caching_config("pytorch", Options{"pytorch", caching_options(), spec.options}, false);
  CHECK(config.roundup_power2_divisions == std::array{8, 8, 8, 8, 8, 8, 8, 8, 16, 1, 0, 8, 2, 2, 2, 2});
  CHECK(rounded_request(config, 256_MiB + 1_B) == 272_MiB);
  CHECK(rounded_request(config, 512_MiB + 1_B) == 512_MiB + 512_B);
  CHECK(rounded_request(config, 4_GiB + 1_B) == 6_GiB);
}

TEST_CASE("settings that PyTorch refuses are refused") {
  using tidepool::testing::PoolUnderTest;
  const auto message = [](const std::string& spec) -> std::string {
    try {
      PoolUnderTest t{spec, 1_GiB};
    } catch (const std::exception& error) {
      return error.what();
    }
    return "";
  };
  CHECK(message("pytorch(max_split_size=19MiB)") ==
        "pytorch: option 'max_split_size' is 19MiB; expected 0B (no limit) or 20MiB or more, in whole MiB");
  CHECK(message("pytorch(max_split_size=20MiB)") == "");
  CHECK(message("pytorch(max_split_size=20MiB,large_segment_size=22MiB)") ==
        "pytorch: option 'max_split_size' is 20MiB; expected 0B (no limit) or 22MiB or more, in whole MiB");
  CHECK(
      message("pytorch(max_non_split_rounding=19MiB)") ==
      "pytorch: option 'max_non_split_rounding' is 19MiB; expected 0B (large_segment_size) or 20MiB or more, in whole "
      "MiB");
  CHECK(message("pytorch(garbage_collection_threshold=1)") ==
        "pytorch: option 'garbage_collection_threshold' is 1; expected 0 or more and less than 1");
  CHECK(message("pytorch(large_segment_size=10MiB)") ==
        "pytorch: option 'large_segment_size' is 10MiB; expected 11MiB or more, in whole MiB");
  CHECK(message("pytorch(large_segment_size=11MiB)") == "");
  CHECK(
      message("pytorch-expandable(large_segment_size=11MiB)") ==
      "pytorch-expandable: option 'large_segment_size' is 11MiB; expected a multiple of 2MiB, which is what the device "
      "maps at once");
  for (const std::string wrong : {"3", "-4", "2147483648", "[256]", "[256:1,3:2]", "[256:1,>:3]", "[0:1]", "[256:1"})
    CHECK(message("pytorch(roundup_power2_divisions=" + wrong + ")") ==
          "pytorch: option 'roundup_power2_divisions' is " + wrong +
              "; expected 0, a power of two up to 2^30, or a list of sizes in MiB with such a number each, as in "
              "[256:1,512:2,>:4]");
}

}  // namespace tidepool::caching_rules_test
