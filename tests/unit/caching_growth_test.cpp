// PyTorch's allocator with two settings that are harmless alone and together let it grow without end.
#include <vector>

#include "tests/catch.hpp"
#include "tests/unit/pool_fixture.hpp"

using namespace tidepool;
using tidepool::testing::PoolUnderTest;

namespace {

/// A cycle places 68 MiB twice, then, with a fence, 2 MiB that stay, and frees both 68 MiB. Returns the reserved memory
/// after each of 20 cycles.
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

TEST_CASE("expandable segments with a split limit grow by all of a cycle that ends in memory that stays") {
  // Both 68 MiB are below the limit of 128 MiB. When they are free, they are one block of 136, which no request below
  // the limit gets. At the end of the range, the block would grow in place; before the fence it cannot.
  const std::vector<Bytes> reserved = reserved_after_cycles("pytorch-expandable(max_split_size=128MiB)", true);
  for (std::size_t i = 0; i < reserved.size(); ++i)
    CHECK(reserved[i] == round_up(138_MiB * static_cast<std::int64_t>(i + 1), 20_MiB));
}

TEST_CASE("neither of the two settings alone grows by more than the memory that stays") {
  const std::vector<Bytes> expandable = reserved_after_cycles("pytorch-expandable", true);
  for (std::size_t i = 0; i < expandable.size(); ++i)
    CHECK(expandable[i] == round_up(136_MiB + 2_MiB * static_cast<std::int64_t>(i + 1), 20_MiB));
  for (const char* pool : {"pytorch", "pytorch(max_split_size=128MiB)"}) {
    INFO(pool);
    const std::vector<Bytes> native = reserved_after_cycles(pool, true);
    for (std::size_t i = 0; i < native.size(); ++i)  // ten of what stays in a segment of 20 MiB
      CHECK(native[i] == 136_MiB + 20_MiB * static_cast<std::int64_t>(i / 10 + 1));
  }
}

TEST_CASE("with both settings and nothing that stays, the free range at the end is used again") {
  for (const Bytes reserved : reserved_after_cycles("pytorch-expandable(max_split_size=128MiB)", false))
    CHECK(reserved == 140_MiB);
}
