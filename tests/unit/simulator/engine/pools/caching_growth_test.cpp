// PyTorch's allocator with two settings: each alone is harmless; together they let the reserved memory grow forever.
#include <vector>

#include "tests/catch.hpp"
#include "tests/unit/pool_fixture.hpp"

namespace tidepool::caching_growth_test {

using tidepool::testing::PoolUnderTest;

namespace {

/// Reserved memory after each of 20 cycles. A cycle places 68 MiB twice and then frees both blocks. With a fence, it
/// places 2 MiB behind them, which stay.
std::vector<Bytes> reserved_after_cycles(const std::string& pool, bool fence) {
  PoolUnderTest t{pool, 64_GiB};
  std::vector<Bytes> reserved;
  for (int cycle = 0; cycle < 20; ++cycle) {
    const Block first = t.place(68_MiB).value(), second = t.place(68_MiB).value();
    if (fence) t.place(2_MiB);
    t.pool->release(first);
    t.pool->release(second);
    reserved.push_back(t.device.reserved());
  }
  return reserved;
}

}  // namespace

TEST_CASE("expandable segments with a split limit grow by a whole cycle if its last block stays") {
  // Both blocks are below the limit of 128 MiB. When they are free, they are one block of 136 MiB, which no request
  // below the limit gets. At the end of the range, this block would grow in place; with a fence behind it, it cannot.
  const std::vector<Bytes> reserved = reserved_after_cycles("pytorch-expandable(max_split_size=128MiB)", true);
  for (std::size_t i = 0; i < reserved.size(); ++i)
    CHECK(reserved[i] == round_up(138_MiB * static_cast<std::int64_t>(i + 1), 20_MiB));
}

TEST_CASE("with only one of the two settings, memory grows by the blocks that stay and no more") {
  const std::vector<Bytes> expandable = reserved_after_cycles("pytorch-expandable", true);
  for (std::size_t i = 0; i < expandable.size(); ++i)
    CHECK(expandable[i] == round_up(136_MiB + 2_MiB * static_cast<std::int64_t>(i + 1), 20_MiB));
  for (const char* pool : {"pytorch", "pytorch(max_split_size=128MiB)"}) {
    INFO(pool);
    const std::vector<Bytes> native = reserved_after_cycles(pool, true);
    for (std::size_t i = 0; i < native.size(); ++i)  // a segment of 20 MiB has ten fences
      CHECK(native[i] == 136_MiB + 20_MiB * static_cast<std::int64_t>(i / 10 + 1));
  }
}

TEST_CASE("with both settings and no block that stays, the free range at the end is used again") {
  for (const Bytes reserved : reserved_after_cycles("pytorch-expandable(max_split_size=128MiB)", false))
    CHECK(reserved == 140_MiB);
}

}  // namespace tidepool::caching_growth_test
