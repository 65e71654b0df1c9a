#include <algorithm>
#include <map>
#include <random>
#include <vector>

#include "tests/catch.hpp"
#include "tests/unit/pool_fixture.hpp"
#include "traces/base/error.hpp"

namespace tidepool::arena_pools_test {

using tidepool::testing::PoolUnderTest;

namespace {

/// Best fit and first fit by definition: scans every hole between the blocks in use.
class NaiveArena {
 public:
  NaiveArena(Bytes capacity, bool best) : capacity_{capacity}, best_{best} {}

  std::optional<Bytes> place(Bytes size) {
    std::optional<Block> chosen;
    Bytes end;
    const auto consider = [&](Bytes hole_end) {
      const Block hole{end, hole_end - end};
      if (hole.size >= size && (!chosen || (best_ && hole.size < chosen->size))) chosen = hole;
    };
    for (const auto& [offset, used] : blocks_) {
      consider(offset);
      end = offset + used;
    }
    consider(capacity_);
    if (!chosen) return {};
    blocks_[chosen->offset] = size;
    return chosen->offset;
  }
  void release(Bytes offset) { blocks_.erase(offset); }

 private:
  Bytes capacity_;
  bool best_;
  std::map<Bytes, Bytes> blocks_;
};

std::optional<Bytes> offset(const std::optional<Block>& block) {
  return block ? std::optional{block->offset} : std::nullopt;
}

}  // namespace

TEST_CASE("the ideal pool counts bytes up to the capacity, unrounded and without addresses") {
  PoolUnderTest t{"ideal", 100_B};
  CHECK(t.place(60_B) == Block{kNoAddress, 60_B});
  CHECK(t.place(41_B) == std::nullopt);
  CHECK(t.place(40_B) == Block{kNoAddress, 40_B});
  CHECK(t.pool->largest_hole() == 0_B);
  t.pool->release({kNoAddress, 60_B});
  CHECK(t.pool->largest_hole() == 60_B);
  CHECK(t.place(0_B) == Block{kNoAddress, 0_B});
}

TEST_CASE("best fit takes the smallest hole, first fit the lowest") {
  // Holes of 3 KiB at 1 KiB and of 2 KiB at 5 KiB, each followed by a block in use.
  for (const auto& [name, expected] : {std::pair{"best-fit", 5_KiB}, std::pair{"first-fit", 1_KiB}}) {
    PoolUnderTest t{name, 1_GiB};
    std::vector<Block> blocks;
    for (const Bytes size : {1_KiB, 3_KiB, 1_KiB, 2_KiB, 1_KiB}) blocks.push_back(t.place(size).value());
    t.pool->release(blocks[1]);
    t.pool->release(blocks[3]);
    CHECK(offset(t.place(2_KiB)) == expected);
  }
}

TEST_CASE("among holes of equal size the lowest address wins") {
  for (const char* name : {"best-fit", "first-fit"}) {
    PoolUnderTest t{name, 1_GiB};
    std::vector<Block> blocks;
    for (int i = 0; i < 7; ++i) blocks.push_back(t.place(1_KiB).value());
    for (const std::size_t i : {5u, 1u, 3u}) t.pool->release(blocks[i]);
    CHECK(offset(t.place(1_KiB)) == 1_KiB);
    CHECK(offset(t.place(1_KiB)) == 3_KiB);
    CHECK(offset(t.place(512_B)) == 5_KiB);
    CHECK(offset(t.place(512_B)) == 5_KiB + 512_B);  // the rest of that hole
  }
}

TEST_CASE("freed neighbours become one hole, on both sides and up to the end") {
  for (const char* name : {"best-fit", "first-fit"}) {
    PoolUnderTest t{name, 8_KiB};
    std::vector<Block> blocks;
    for (int i = 0; i < 8; ++i) blocks.push_back(t.place(1_KiB).value());
    CHECK(t.place(1_B) == std::nullopt);
    t.pool->release(blocks[1]);
    t.pool->release(blocks[3]);
    CHECK(t.place(2_KiB) == std::nullopt);
    t.pool->release(blocks[2]);
    CHECK(t.pool->largest_hole() == 3_KiB);
    CHECK(t.place(3_KiB) == Block{1_KiB, 3_KiB});
    for (const std::size_t i : {6u, 7u, 5u}) t.pool->release(blocks[i]);
    CHECK(t.place(3_KiB) == Block{5_KiB, 3_KiB});
  }
}

TEST_CASE("sizes are rounded up to the alignment, and a request for 0 B gets a place of its own") {
  PoolUnderTest t{"best-fit", 1_GiB};
  CHECK(t.place(0_B) == Block{0_B, 512_B});
  CHECK(t.place(512_B) == Block{512_B, 512_B});
  CHECK(t.place(513_B) == Block{1_KiB, 1_KiB});
  PoolUnderTest fine{"first-fit(alignment=1B)", 10_B};
  CHECK(fine.place(7_B) == Block{0_B, 7_B});
  CHECK(fine.place(4_B) == std::nullopt);
  CHECK(fine.place(3_B) == Block{7_B, 3_B});
}

TEST_CASE("a capacity that is no multiple of the alignment is used up to the last multiple") {
  PoolUnderTest t{"best-fit", 1'200_B};
  CHECK(t.place(513_B) == Block{0_B, 1_KiB});
  CHECK(t.place(1_B) == std::nullopt);
}

TEST_CASE("an alignment of 0 B is refused") {
  CHECK_THROWS_WITH((PoolUnderTest{"best-fit(alignment=0B)", 1_GiB}),
                    "best-fit: option 'alignment' is '0B'; expected at least 1B");
}

TEST_CASE("both fits give the addresses of their definitions on random requests") {
  for (const bool best : {true, false})
    for (std::uint32_t seed = 1; seed <= 12; ++seed) {
      std::mt19937 random{seed};
      const Bytes capacity = seed % 3 == 0 ? 1_GiB : 600_KiB;
      PoolUnderTest t{best ? "best-fit" : "first-fit", capacity};
      NaiveArena naive{capacity, best};
      std::vector<Block> live;
      const std::uint32_t kinds = seed % 2 == 0 ? 7 : 1000;  // few sizes: many ties
      bool equal = true;
      for (int i = 0; i < 6'000 && equal; ++i) {
        if (live.empty() || random() % 100 < (i / 1'000 % 2 == 0 ? 60u : 40u)) {
          const Bytes size{static_cast<std::int64_t>(1 + random() % kinds) * 512 << random() % 4};
          const std::optional<Block> block = t.place(size);
          equal = offset(block) == naive.place(size);
          if (block) live.push_back(*block);
        } else {
          std::swap(live[random() % live.size()], live.back());
          t.pool->release(live.back());
          naive.release(live.back().offset);
          live.pop_back();
        }
      }
      CHECK(equal);
    }
}

}  // namespace tidepool::arena_pools_test
