#include "simulator/engine/pools/caching_allocator.hpp"

#include <vector>

#include "tests/catch.hpp"
#include "tests/unit/pool_fixture.hpp"

namespace tidepool::caching_allocator_test {

using tidepool::testing::PoolUnderTest;

TEST_CASE("a large block is split when more than 1 MiB remains") {
  for (const auto& [size, split] : {std::pair{10_MiB - 512_B, true}, std::pair{10_MiB, false}}) {
    PoolUnderTest t{"pytorch", 20_MiB};
    CHECK(t.place(9_MiB) == Block{0_B, 9_MiB});
    CHECK(t.place(size) == Block{9_MiB, split ? size : 11_MiB});
    CHECK(t.pool->largest_hole() == (split ? 1_MiB + 512_B : 0_B));
  }
}

TEST_CASE("a small block is split when 512 B remain") {
  PoolUnderTest t{"pytorch", 2_MiB};
  CHECK(t.place(1_MiB) == Block{0_B, 1_MiB});
  CHECK(t.place(1_MiB - 512_B) == Block{1_MiB, 1_MiB - 512_B});
  CHECK(t.place(1_B) == Block{2_MiB - 512_B, 512_B});
  CHECK(t.place(1_B) == std::nullopt);
}

TEST_CASE("small blocks, large blocks and each stream's blocks are kept apart") {
  PoolUnderTest t{"pytorch", 1_GiB};
  CHECK(t.place(512_B, 0) == Block{0_B, 512_B});
  CHECK(t.place(2_MiB, 0) == Block{2_MiB, 2_MiB});
  CHECK(t.place(512_B, 1) == Block{22_MiB, 512_B});
  CHECK(t.place(512_B, 0) == Block{512_B, 512_B});
  CHECK(t.device.reserved() == 24_MiB);
}

TEST_CASE("among cached blocks the smallest that fits is taken, and the lowest of equals") {
  PoolUnderTest t{"pytorch", 1_GiB};
  std::vector<Block> blocks;
  for (const Bytes size : {14_MiB, 12_MiB, 16_MiB, 12_MiB}) blocks.push_back(t.place(size).value());
  for (const std::size_t i : {3u, 2u, 1u, 0u}) t.pool->release(blocks[i]);
  CHECK(t.place(11_MiB) == Block{blocks[1].offset, 12_MiB});  // 1 MiB remains: not split
  CHECK(t.place(11_MiB) == Block{blocks[3].offset, 12_MiB});
  CHECK(t.place(11_MiB) == Block{blocks[0].offset, 11_MiB});
}

TEST_CASE("when the device refuses, whole cached segments are released and the request is tried once more") {
  PoolUnderTest t{"pytorch", 42_MiB};
  const Block whole = t.place(20_MiB).value();
  const Block part = t.place(2_MiB).value();  // keeps a segment of 20 MiB split
  t.pool->release(whole);
  CHECK(t.place(22_MiB) == Block{40_MiB, 22_MiB});  // 20 + 20 + 22 MiB do not fit, 20 + 22 MiB do
  CHECK(t.device.reserved() == 42_MiB);
  CHECK(t.place(20_MiB) == std::nullopt);
  CHECK(part.offset == 20_MiB);
  CHECK(t.place(18_MiB) == Block{22_MiB, 18_MiB});  // the rest of the split segment was kept
}

TEST_CASE("blocks above the split limit are taken whole, and only by requests of about their size") {
  PoolUnderTest t{"pytorch(max_split_size=100MiB)", 1_GiB};
  const Block big = t.place(200_MiB).value();
  t.pool->release(big);
  CHECK(t.place(50_MiB) == Block{200_MiB, 50_MiB});    // a request below the limit gets no oversize block
  CHECK(t.place(180_MiB) == Block{250_MiB, 180_MiB});  // smaller by 20 MiB: it gets a block of its own
  CHECK(t.place(180_MiB + 512_B) == Block{0_B, 200_MiB});
}

TEST_CASE("when the device refuses, oversize blocks are released before all others") {
  PoolUnderTest t{"pytorch(max_split_size=100MiB)", 450_MiB};
  const Block a = t.place(150_MiB).value();
  const Block b = t.place(200_MiB).value();
  const Block c = t.place(20_MiB).value();
  for (const Block& block : {a, b, c}) t.pool->release(block);
  CHECK(t.place(120_MiB).has_value());  // only the block of 150 MiB was released
  CHECK(t.device.reserved() == 200_MiB + 20_MiB + 120_MiB);
  CHECK(t.place(300_MiB).has_value());  // needs more than the 200 MiB, and more than all oversize blocks
  CHECK(t.device.reserved() == 120_MiB + 300_MiB);
}

TEST_CASE("the garbage collector frees the blocks that were idle for the longest time") {
  PoolUnderTest t{"pytorch(garbage_collection_threshold=0.5)", 100_MiB};
  const Block a = t.place(20_MiB).value();
  const Block b = t.place(30_MiB).value();
  t.pool->release(a);
  CHECK(t.place(24_MiB).has_value());
  CHECK(t.device.reserved() == 74_MiB);
  t.pool->release(b);
  // 74 MiB are reserved, 24 MiB more than half. a is 2 requests old, b 1, so the mean age is 1.5 and only a is
  // released. Its 20 MiB are not enough, so b follows in a second round.
  CHECK(t.place(40_MiB).has_value());
  CHECK(t.device.reserved() == 24_MiB + 40_MiB);
}

TEST_CASE("the garbage collector waits until more than its fraction is reserved, and spares split blocks") {
  for (const auto& [second, collected] : {std::pair{30_MiB, false}, std::pair{32_MiB, true}}) {
    PoolUnderTest t{"pytorch(garbage_collection_threshold=0.5)", 100_MiB};
    const Block a = t.place(20_MiB).value();
    CHECK(t.place(second).has_value());
    t.pool->release(a);
    CHECK(t.place(24_MiB).has_value());
    CHECK(t.device.reserved() == second + 24_MiB + (collected ? 0_MiB : 20_MiB));
  }
  PoolUnderTest split{"pytorch(garbage_collection_threshold=0.5)", 100_MiB};
  const Block part = split.place(9_MiB).value(), rest = split.place(9_MiB).value();
  CHECK(split.place(32_MiB).has_value());
  split.pool->release(part);
  CHECK(split.place(24_MiB).has_value());
  CHECK(split.device.reserved() == 20_MiB + 32_MiB + 24_MiB);
  CHECK(rest.offset == 9_MiB);
}

TEST_CASE("a request above the split limit may get a block that is larger by less than the rounding") {
  for (const auto& [rounding, reused] : {std::pair{"40MiB", false}, std::pair{"41MiB", true}}) {
    PoolUnderTest t{std::string{"pytorch(max_split_size=100MiB,max_non_split_rounding="} + rounding + ")", 1_GiB};
    const Block big = t.place(200_MiB).value();
    t.pool->release(big);
    CHECK((t.place(160_MiB) == big) == reused);
  }
}

TEST_CASE("large_segment_size sets the size of segments for requests above 1 MiB and below 10 MiB") {
  for (const auto& [size, segment] : {std::pair{1_MiB, 2_MiB}, std::pair{1_MiB + 512_B, 16_MiB},
                                      std::pair{10_MiB - 512_B, 16_MiB}, std::pair{10_MiB, 10_MiB}}) {
    PoolUnderTest t{"pytorch(large_segment_size=16MiB)", 1_GiB};
    CHECK(t.place(size).has_value());
    CHECK(t.device.reserved() == segment);
  }
}

TEST_CASE("requests are rounded up before a block is searched for") {
  PoolUnderTest t{"pytorch(roundup_power2_divisions=[16:4,>:0])", 1_GiB};
  CHECK(t.place(17_MiB) == Block{0_B, 20_MiB});     // up to a multiple of a quarter of 16 MiB
  CHECK(t.place(33_MiB) == Block{20_MiB, 34_MiB});  // no divisions above 32 MiB, and 1 MiB is not split off
  CHECK(t.device.reserved() == 20_MiB + 34_MiB);
}

TEST_CASE("a captured graph's pool has its own blocks, which stay when others are released") {
  SegmentDevice device{1_GiB};
  CachingAllocator memory{{}, device, 1_GiB};
  const CachingAllocator::Source graph{.owner = 0, .number = 1};
  const Block own = memory.malloc(30_MiB, graph).value(), other = memory.malloc(30_MiB, {}).value();
  memory.free(own.offset);
  CHECK(memory.malloc(30_MiB, {}).value() != own);
  CHECK(memory.malloc(30_MiB, graph).value() == own);
  memory.free(own.offset);
  memory.free(other.offset);
  memory.release_cached_blocks();
  CHECK(device.reserved() == 60_MiB);
  memory.release_cached_blocks(true);
  CHECK(device.reserved() == 30_MiB);
}

TEST_CASE("expandable segments map whole pages and grow where they end") {
  PoolUnderTest t{"pytorch-expandable", 80_MiB};
  const Block a = t.place(9_MiB).value();
  CHECK(t.device.reserved() == 20_MiB);
  const Block b = t.place(30_MiB).value();
  CHECK(b == Block{a.offset + 9_MiB, 30_MiB});  // 11 MiB of the first page, and one more page
  CHECK(t.device.reserved() == 40_MiB);
  const Block c = t.place(512_B).value();  // small blocks have a range of their own, with pages of 2 MiB
  CHECK(c.offset == 90_MiB + 10_MiB);      // behind 1 1/8 of the capacity, in whole pages
  CHECK(t.device.reserved() == 42_MiB);
  CHECK(t.place(1_MiB + 512_B) == Block{b.offset + 30_MiB, 1_MiB + 512_B});
  CHECK(t.device.reserved() == 62_MiB);
}

TEST_CASE("when the device refuses a page, whole pages of free expandable blocks are unmapped") {
  PoolUnderTest t{"pytorch-expandable", 60_MiB};
  const Block a = t.place(10_MiB).value();
  const Block b = t.place(45_MiB).value();
  CHECK(t.place(5_MiB) == Block{b.offset + 45_MiB, 5_MiB});
  CHECK(t.device.reserved() == 60_MiB);
  t.pool->release(b);
  // [10, 55) MiB is free; only one of its three pages, [20, 40), is free as a whole. 46 MiB do not fit in [10, 55), and
  // elsewhere only 20 MiB could be mapped.
  CHECK(t.place(46_MiB) == std::nullopt);
  CHECK(t.device.reserved() == 40_MiB);
  CHECK(t.place(20_MiB) ==
        Block{a.offset + 10_MiB, 20_MiB});  // the page is mapped again, behind the free block before it
  CHECK(t.device.reserved() == 60_MiB);
  CHECK(t.place(25_MiB) == Block{a.offset + 30_MiB, 25_MiB});
}

TEST_CASE("among expandable blocks, one that can grow counts as larger") {
  // The free block of 4 MiB at the end of the range can grow by all unmapped memory. The one of 5 MiB cannot grow.
  PoolUnderTest t{"pytorch-expandable", 1_GiB};
  std::vector<Block> blocks;
  for (const Bytes size : {5_MiB, 11_MiB}) blocks.push_back(t.place(size).value());
  t.pool->release(blocks[0]);
  CHECK(t.device.reserved() == 20_MiB);
  CHECK(t.place(3_MiB) == Block{blocks[0].offset, 3_MiB});
}

}  // namespace tidepool::caching_allocator_test
