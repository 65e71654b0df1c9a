// The host memory for swapped-out content.
#include "simulator/engine/host_pool.hpp"

#include "tests/catch.hpp"

namespace tidepool::host_pool_test {

namespace {

/// Pinning takes 1 us for a request and 1 ns for a byte.
HostMemory memory(Bytes capacity, bool powers_of_two) {
  return {capacity, powers_of_two, 1_us, BytesPerSecond{1'000'000'000}};
}

}  // namespace

TEST_CASE("a block is pinned once and serves later requests of its size") {
  const HostMemory host = memory(1_GiB, true);
  HostPool pool{host};
  CHECK(pool.take(100_B) == 1_us + 128_ns);
  CHECK(pool.take(128_B) == 1_us + 128_ns);
  pool.give_back(100_B);
  CHECK(pool.take(65_B) == 0_ns);  // takes a block of 128 B, too
  pool.give_back(128_B);
  CHECK(pool.take(64_B) == 1_us + 64_ns);
  CHECK(pool.take(129_B) == 1_us + 256_ns);
  CHECK(pool.in_use() == 128_B + 64_B + 256_B);
  CHECK(pool.peak() == 128_B + 128_B + 64_B + 256_B);
}

TEST_CASE("without rounding, idle memory serves any size, and only missing bytes are pinned") {
  const HostMemory host = memory(1_GiB, false);
  HostPool pool{host};
  CHECK(pool.take(100_B) == 1_us + 100_ns);
  pool.give_back(100_B);
  CHECK(pool.take(60_B) == 0_ns);
  CHECK(pool.take(50_B) == 1_us + 10_ns);
  CHECK(pool.peak() == 110_B);
}

TEST_CASE("content fits if its blocks fit: idle blocks do not count") {
  const HostMemory host = memory(256_B, true);
  HostPool pool{host};
  CHECK(pool.fits(256_B));
  CHECK_FALSE(pool.fits(257_B));
  pool.take(128_B);
  CHECK(pool.fits(128_B));
  CHECK_FALSE(pool.fits(129_B));
  pool.give_back(128_B);
  CHECK(pool.fits(200_B));
  CHECK(pool.take(200_B) == 1_us + 256_ns);  // the idle block of 128 B is unpinned first
  CHECK(pool.peak() == 256_B);
  pool.give_back(200_B);
  CHECK(pool.take(128_B) == 1_us + 128_ns);
}

TEST_CASE("pinning takes no time if the machine file has no time for it") {
  const HostMemory host;
  HostPool pool{host};
  CHECK(pool.take(100_GiB) == 0_ns);
  CHECK(pool.in_use() == 100_GiB);
}

}  // namespace tidepool::host_pool_test
