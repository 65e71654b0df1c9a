// TensorFlow's and XLA's allocator, rule by rule.
#include <vector>

#include "policies/pool/bfc/bfc_pool.hpp"
#include "tests/catch.hpp"
#include "tests/unit/pool_fixture.hpp"

namespace tidepool::bfc_test {

using tidepool::testing::PoolUnderTest;

namespace {

/// A device that refuses segments above a size, although it has enough free memory.
class Fragmented final : public Device {
 public:
  explicit Fragmented(Bytes most) : most_{most} {}
  std::optional<Bytes> reserve(Bytes size) override {
    asked.push_back(size);
    if (size > most_) return {};
    next_ += 1'024_GiB;
    return next_;
  }
  void release(Bytes, Bytes) override {}
  Bytes reserve_addresses(Bytes) override { return {}; }
  void release_addresses(Bytes, Bytes) override {}
  bool map(Bytes, Bytes, Bytes) override { return false; }
  void unmap(Bytes, Bytes, Bytes) override {}

  std::vector<Bytes> asked;

 private:
  Bytes most_, next_;
};

}  // namespace

TEST_CASE("bfc rounds sizes up to 256 B, and splits a chunk that is at least twice as large as the request") {
  for (const auto& [size, split] : {std::pair{1_MiB, true}, std::pair{1_MiB + 1_B, false}}) {
    PoolUnderTest t{"bfc", 1_GiB};
    CHECK(t.place(size) == Block{0_B, split ? 1_MiB : 2_MiB});
  }
  PoolUnderTest t{"bfc", 1_GiB};
  CHECK(t.place(1_B) == Block{0_B, 256_B});
  CHECK(t.place(257_B) == Block{256_B, 512_B});
}

TEST_CASE("bfc splits a chunk if 128 MiB remain, or the fraction of the memory that its options give") {
  // 512 MiB in one region: 384 MiB leave 128.
  for (const auto& [size, split] : {std::pair{384_MiB, true}, std::pair{384_MiB + 256_B, false}}) {
    PoolUnderTest t{"bfc(allow_growth=off)", 512_MiB};
    CHECK(t.place(size) == Block{0_B, split ? 384_MiB : 512_MiB});
  }
  for (const auto& [size, split] : {std::pair{448_MiB, true}, std::pair{448_MiB + 256_B, false}}) {
    PoolUnderTest t{"bfc(allow_growth=off,fragmentation_fraction=0.125)", 512_MiB};
    CHECK(t.place(size) == Block{0_B, split ? 448_MiB : 512_MiB});
  }
}

TEST_CASE("bfc takes the smallest chunk, the lowest of equals, and merges free neighbours") {
  PoolUnderTest t{"bfc(allow_growth=off)", 1_GiB};
  std::vector<Block> blocks;
  for (const Bytes size : {3_MiB, 1_MiB, 2_MiB, 1_MiB, 2_MiB, 1_MiB}) blocks.push_back(t.place(size).value());
  for (const std::size_t i : {4u, 0u, 2u}) t.pool->release(blocks[i]);
  CHECK(t.place(2_MiB) == blocks[2]);
  CHECK(t.place(2_MiB) == blocks[4]);
  t.pool->release(blocks[1]);  // [0, 4 MiB) is one chunk now
  CHECK(t.place(4_MiB) == Block{0_B, 4_MiB});
}

TEST_CASE("bfc's regions start at 2 MiB and double, unless a request made one larger") {
  PoolUnderTest t{"bfc", 1_GiB};
  CHECK(t.place(2_MiB).has_value());
  CHECK(t.device.reserved() == 2_MiB);  // the next will be 4 MiB
  CHECK(t.place(2_MiB).has_value());
  CHECK(t.device.reserved() == 6_MiB);  // 2 MiB of it are free; the next region will be 8 MiB
  CHECK(t.place(9_MiB).has_value());
  CHECK(t.device.reserved() == 22_MiB);  // the request needed a region of 16 MiB, so the next is not doubled
  CHECK(t.place(15_MiB).has_value());
  CHECK(t.device.reserved() == 38_MiB);
  CHECK(t.place(20_MiB).has_value());  // now it is doubled
  CHECK(t.device.reserved() == 70_MiB);
}

TEST_CASE("bfc's last region is the rest of the capacity") {
  PoolUnderTest t{"bfc", 5_MiB};
  CHECK(t.place(2_MiB).has_value());
  CHECK(t.place(3_MiB + 256_B) == std::nullopt);
  CHECK(t.place(3_MiB).has_value());
  CHECK(t.device.reserved() == 5_MiB);
}

TEST_CASE("while the device refuses a region, bfc tries 0.9 of its size, as long as the request fits") {
  const auto asked = [](Bytes most, Bytes request) {
    Fragmented device{most};
    Bfc bfc{{}, device, 1_GiB};
    bfc.malloc(request);
    return device.asked;
  };
  // 0.9 * 2 MiB = 1,887,436.8 B; as a float 1,887,436.75; rounded up to 256 B: 1,887,488. The next region likewise.
  CHECK(asked(1'900'000_B, 1_MiB) == std::vector{2_MiB, 1'887'488_B});
  CHECK(asked(1'700'000_B, 1_MiB) == std::vector{2_MiB, 1'887'488_B, 1'698'816_B});
  CHECK(asked(1'700'000_B, 1'887'488_B) == std::vector{2_MiB, 1'887'488_B});
}

TEST_CASE("bfc gives free regions back only with garbage collection") {
  for (const auto& [pool, found] : {std::pair{"bfc", false}, std::pair{"bfc(garbage_collection=on)", true}}) {
    PoolUnderTest t{pool, 40_MiB};
    const Block a = t.place(16_MiB).value();
    const Block b = t.place(8_MiB).value();  // two regions of 16 MiB
    t.pool->release(a);
    CHECK(t.place(20_MiB).has_value() == found);
    // With garbage collection, 16 MiB are released, and the new region has the other 24 MiB.
    CHECK(t.device.reserved() == (found ? 40_MiB : 32_MiB));
    CHECK(t.place(8_MiB).has_value());
    CHECK(b.size == 8_MiB);
  }
}

TEST_CASE("garbage collection keeps a region that is partly in use, and all regions if their memory is not enough") {
  PoolUnderTest t{"bfc(garbage_collection=on)", 32_MiB};
  const Block a = t.place(16_MiB).value(), b = t.place(8_MiB).value(), c = t.place(8_MiB).value();
  t.pool->release(b);
  CHECK(t.place(9_MiB) == std::nullopt);
  CHECK(t.device.reserved() == 32_MiB);
  t.pool->release(a);
  CHECK(t.place(17_MiB) == std::nullopt);
  CHECK(t.device.reserved() == 32_MiB);
  CHECK(c.size == 8_MiB);
}

TEST_CASE("bfc refuses a fraction outside 0 to 1") {
  CHECK_THROWS_WITH(PoolUnderTest("bfc(fragmentation_fraction=2)", 1_GiB),
                    "bfc: option 'fragmentation_fraction' is '2'; expected 0 to 1");
}

}  // namespace tidepool::bfc_test
