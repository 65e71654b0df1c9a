#include "simulator/engine/pools/cnmem.hpp"

#include "tests/catch.hpp"
#include "tests/unit/pool_fixture.hpp"

namespace tidepool::cnmem_test {

using tidepool::testing::PoolUnderTest;

TEST_CASE("cnmem takes the initial segment at once and cuts it in multiples of 512 B") {
  PoolUnderTest t{"cnmem", 1_GiB};
  CHECK(t.device.reserved() == 256_MiB);
  CHECK(t.place(1_B) == Block{0_B, 512_B});
  CHECK(t.place(513_B) == Block{512_B, 1_KiB});
  CHECK(t.place(0_B) == Block{1'536_B, 512_B});
}

TEST_CASE("cnmem grows by exactly the rounded size, and only when nothing fits") {
  PoolUnderTest t{"cnmem(init=1MiB)", 1_GiB};
  const Block first = t.place(1_MiB - 512_B).value();
  CHECK(t.place(512_B) == Block{1_MiB - 512_B, 512_B});  // a split may leave any remainder
  CHECK(t.device.reserved() == 1_MiB);
  CHECK(t.place(700_B) == Block{2_MiB, 1_KiB});
  CHECK(t.device.reserved() == 1_MiB + 1_KiB);
  t.pool->release(first);
  CHECK(t.place(1_KiB) == Block{0_B, 1_KiB});
  CHECK(t.device.reserved() == 1_MiB + 1_KiB);  // segments are never given back
}

TEST_CASE("cnmem merges neighbours but not across segments") {
  // Two segments of 2 MiB that the device puts next to each other.
  PoolUnderTest t{"cnmem(init=2MiB)", 1_GiB};
  const Block a = t.place(1_MiB).value();
  const Block b = t.place(1_MiB).value();
  const Block c = t.place(2_MiB).value();
  CHECK(c.offset == b.offset + 1_MiB);
  t.pool->release(c);
  t.pool->release(b);
  t.pool->release(a);
  CHECK(t.pool->largest_hole() == 2_MiB);
  CHECK(t.place(2_MiB) == Block{0_B, 2_MiB});  // the lower of two equal blocks
}

TEST_CASE("cnmem refuses when the device does, and begins with less memory if the device has less") {
  PoolUnderTest t{"cnmem", 3_MiB + 100_B};
  CHECK(t.device.reserved() == 3_MiB);
  CHECK(t.place(3_MiB).has_value());
  CHECK(t.place(1_B) == std::nullopt);
}

}  // namespace tidepool::cnmem_test
