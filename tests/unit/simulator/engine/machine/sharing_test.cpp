// Devices that share a link to the host, or the host's memory.
#include "simulator/engine/machine/sharing.hpp"

#include "tests/catch.hpp"

namespace tidepool::sharing_test {

namespace {

/// Machine with 10 B/us each way after 1 us, 800 B on the host, and 80 B in storage.
Machine shared(Sharing sharing) {
  Machine machine;
  machine.h2d = machine.d2h = machine.storage.read =
      machine.storage.write = {.rate = BytesPerSecond{10'000'000}, .latency = 1_us};
  machine.h2d.times = {{10_B, 4_us}};
  machine.host.capacity = 800_B;
  machine.storage.capacity = 80_B;
  machine.sharing = sharing;
  return machine;
}

}  // namespace

TEST_CASE("a rank has the whole machine unless the machine says which parts devices share") {
  for (const std::size_t rank : {0U, 7U}) CHECK(share_of(shared({}), rank, 8) == shared({}));
}

TEST_CASE("ranks on one link have equal shares of its rate, and each has the whole latency") {
  const Machine mine = share_of(shared({.link = 2}), 5, 8);
  CHECK(mine.d2h.time(100_B) == 21_us);  // 1 + 100 / 5 us; alone 11 us
  CHECK(mine.h2d.time(10_B) == 7_us);    // 1 + 2 * 3 us: the measured 4 us less the latency take twice as long
  CHECK(mine.host == shared({}).host);
  CHECK(mine.storage == shared({}).storage);
}

TEST_CASE("ranks of one host have equal shares of its memory and storage") {
  const Machine mine = share_of(shared({.host = 4}), 0, 8);
  CHECK(mine.host.capacity == 200_B);
  CHECK(mine.storage.capacity == 20_B);
  CHECK(mine.storage.read.time(100_B) == 41_us);
  CHECK(mine.d2h == shared({}).d2h);
  Machine unlimited = shared({.host = 4});
  unlimited.host.capacity = HostMemory{}.capacity;
  CHECK(share_of(unlimited, 0, 8).host.capacity == HostMemory{}.capacity);
}

TEST_CASE("a device without a rank takes no share") {
  // Two devices share a link. Of three ranks, the last has a link for itself.
  CHECK(share_of(shared({.link = 2}), 1, 3).d2h.time(100_B) == 21_us);
  CHECK(share_of(shared({.link = 2}), 2, 3).d2h.time(100_B) == 11_us);
}

}  // namespace tidepool::sharing_test
