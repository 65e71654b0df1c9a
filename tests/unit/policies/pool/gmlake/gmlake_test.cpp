// GMLake, rule by rule. No memory ever has two owners.
#include <fmt/format.h>

#include <tuple>
#include <vector>

#include "policies/pool/gmlake/gmlake_pool.hpp"
#include "simulator/run.hpp"
#include "tests/catch.hpp"
#include "tests/effort.hpp"
#include "tests/random_trace.hpp"
#include "tests/unit/pool_fixture.hpp"
#include "validator/host/host_backend.hpp"

namespace tidepool::gmlake_test {

using tidepool::testing::PoolUnderTest;

namespace {

/// Records which memory is mapped at which addresses.
class Windows final : public Device {
 public:
  explicit Windows(Bytes capacity) : device_{capacity} {}
  std::optional<Bytes> reserve(Bytes size) override { return device_.reserve(size); }
  void release(Bytes address, Bytes size) override { device_.release(address, size); }
  Bytes reserve_addresses(Bytes size) override { return device_.reserve_addresses(size); }
  void release_addresses(Bytes address, Bytes size) override { device_.release_addresses(address, size); }
  bool map(Bytes address, Bytes size, Bytes page) override { return device_.map(address, size, page); }
  void unmap(Bytes address, Bytes size, Bytes page) override { device_.unmap(address, size, page); }
  void show(Bytes address, Bytes size, Bytes memory) override { shown.emplace_back(address, size, memory); }
  void hide(Bytes address, Bytes size) override { hidden.emplace_back(address, size); }
  Bytes reserved() const { return device_.reserved(); }

  std::vector<std::tuple<Bytes, Bytes, Bytes>> shown;
  std::vector<std::tuple<Bytes, Bytes>> hidden;

 private:
  SegmentDevice device_;
};

/// Three free segments, of 12, 14 and 16 MiB, in a device of `capacity`.
struct ThreeFree {
  explicit ThreeFree(const GmLakeConfig& config, Bytes capacity = 1_GiB)
      : device{capacity}, lake{config, device, capacity} {
    a = place(12_MiB).value(), b = place(14_MiB).value(), c = place(16_MiB).value();
    for (const Block& block : {a, b, c}) free(block);
  }
  std::optional<Block> place(Bytes size, std::int64_t stream = 0) { return lake.malloc(size, stream, {}); }
  void free(const Block& block) { lake.free(block.offset, {}); }

  Windows device;
  GmLake lake;
  Block a, b, c;
};

GmLakeConfig stitch_from(Bytes limit) { return {.fragment_limit = limit}; }

}  // namespace

TEST_CASE("gmlake rounds large requests to 2 MiB and splits blocks if 2 MiB remain") {
  PoolUnderTest t{"gmlake", 1_GiB};
  CHECK(t.place(1_MiB + 1_B) == Block{0_B, 2_MiB});
  CHECK(t.device.reserved() == 20_MiB);
  CHECK(t.place(16_MiB - 1_B) == Block{2_MiB, 16_MiB});
  CHECK(t.place(2_MiB) == Block{18_MiB, 2_MiB});
  CHECK(t.device.reserved() == 20_MiB);
  CHECK(t.place(512_B).value().size == 512_B);
  CHECK(t.device.reserved() == 22_MiB);
  CHECK(t.place(2_MiB, 1).has_value());  // another stream has blocks of its own
  CHECK(t.device.reserved() == 42_MiB);
}

TEST_CASE("gmlake stitches free blocks, largest first, for requests of the limit's size or more") {
  ThreeFree t{stitch_from(40_MiB)};
  const Block whole = t.place(40_MiB).value();
  CHECK(t.device.reserved() == 42_MiB);
  CHECK(t.device.shown == std::vector{std::tuple{whole.offset, 16_MiB, t.c.offset},
                                      std::tuple{whole.offset + 16_MiB, 14_MiB, t.b.offset},
                                      std::tuple{whole.offset + 30_MiB, 10_MiB, t.a.offset}});
  CHECK(t.place(2_MiB) == Block{t.a.offset + 10_MiB, 2_MiB});  // the rest of the last block
  CHECK(t.place(12_MiB).has_value());                          // nothing is left of the others
  CHECK(t.device.reserved() == 54_MiB);

  ThreeFree not_yet{stitch_from(42_MiB)};
  CHECK(not_yet.place(40_MiB).has_value());
  CHECK(not_yet.device.reserved() == 82_MiB);
  CHECK(not_yet.device.shown.empty());
}

TEST_CASE("gmlake does not stitch blocks that are too small together, nor a single block") {
  ThreeFree t{stitch_from(2_MiB)};
  CHECK(t.place(44_MiB).has_value());
  CHECK(t.device.shown.empty());
  CHECK(t.place(16_MiB).has_value());
  CHECK(t.place(14_MiB).has_value());
  CHECK(t.place(14_MiB).has_value());  // needs a new segment: only a block of 12 MiB is free
  CHECK(t.device.shown.empty());
}

TEST_CASE("gmlake uses a stitched block again if no other block fits and it is not too large") {
  for (const auto& [limit, again] : {std::pair{2.0, true}, std::pair{1.9, false}}) {
    ThreeFree t{{.fragment_limit = 10_MiB, .reuse_limit = limit}};
    const Block whole = t.place(40_MiB).value();
    t.free(whole);
    CHECK(t.place(40_MiB) == whole);
    t.free(whole);
    const Block part = t.place(20_MiB).value();
    CHECK((part.offset == whole.offset) == again);
    CHECK(part.size == 20_MiB);
    CHECK(t.lake.stitched() == (again ? 1 : 2));
    // In both cases, the pages of `part` are the 16 MiB of c and the first 4 MiB of b. The rest of b and all of a are
    // free.
    CHECK(t.place(10_MiB) == Block{t.b.offset + 4_MiB, 10_MiB});
    CHECK(t.place(12_MiB) == t.a);
    CHECK(t.device.reserved() == 42_MiB);
  }
}

TEST_CASE("a stitched block is not used while one of its pages is in use") {
  ThreeFree t{stitch_from(40_MiB)};
  const Block whole = t.place(40_MiB).value();
  t.free(whole);
  CHECK(t.place(16_MiB) == t.c);
  const Block other = t.place(40_MiB).value();
  CHECK(other.offset != whole.offset);
  CHECK(t.device.reserved() == 82_MiB);
  t.free(t.c);
  CHECK(t.place(40_MiB) == whole);
}

TEST_CASE("gmlake's level determines when it stitches") {
  // Level 0 stitches before it asks the device. Level 1 stitches after the device has refused 40 MiB more. Level 2
  // stitches only after all free segments have been released; then no blocks are left to stitch.
  for (const auto& [level, capacity, reserved, stitched] :
       {std::tuple{0, 82_MiB, 42_MiB, 1}, std::tuple{1, 82_MiB, 82_MiB, 0}, std::tuple{1, 81_MiB, 42_MiB, 1},
        std::tuple{2, 81_MiB, 40_MiB, 0}}) {
    ThreeFree t{{.fragment_limit = 40_MiB, .defragment_level = level}, capacity};
    CHECK(t.place(40_MiB).has_value());
    CHECK(t.device.reserved() == reserved);
    CHECK(t.lake.stitched() == static_cast<std::size_t>(stitched));
  }
}

TEST_CASE("when the device refuses, gmlake releases whole segments and drops the blocks stitched from them") {
  ThreeFree t{stitch_from(40_MiB), 42_MiB};
  const Block whole = t.place(40_MiB).value();
  CHECK(t.place(30_MiB, 1) == std::nullopt);
  t.free(whole);
  CHECK(t.place(30_MiB, 1).has_value());  // another stream cannot use the cached segments
  CHECK(t.device.reserved() == 30_MiB);
  CHECK(t.lake.stitched() == 0);
  CHECK(t.device.hidden == std::vector{std::tuple{whole.offset, 40_MiB}});
}

TEST_CASE("a page that a stitched block does not need may be released while the block is in use") {
  ThreeFree t{stitch_from(10_MiB), 42_MiB};
  const Block whole = t.place(40_MiB).value();
  t.free(whole);
  CHECK(t.place(20_MiB).value().offset == whole.offset);  // uses c and 4 MiB of b, so that all of a is free
  CHECK(t.place(12_MiB, 1).has_value());
  CHECK(t.device.reserved() == 42_MiB);
  CHECK(t.device.hidden ==
        std::vector{std::tuple{whole.offset + 30_MiB, 2_MiB}, std::tuple{whole.offset + 32_MiB, 2_MiB},
                    std::tuple{whole.offset + 34_MiB, 2_MiB}, std::tuple{whole.offset + 36_MiB, 2_MiB},
                    std::tuple{whole.offset + 38_MiB, 2_MiB}});
  t.free({whole.offset, 20_MiB});
  CHECK(t.lake.stitched() == 0);
  CHECK(t.device.hidden.back() == std::tuple{whole.offset, 30_MiB});
  CHECK(t.place(16_MiB) == t.c);
}

TEST_CASE("free stitched blocks are dropped when all stitched blocks exceed a limit of addresses") {
  for (const auto& [limit, left] : {std::pair{66_MiB, 2u}, std::pair{64_MiB, 1u}}) {
    ThreeFree t{{.fragment_limit = 20_MiB, .auto_gc = limit}};
    t.free(t.place(40_MiB).value());
    CHECK(t.place(16_MiB) == t.c);
    CHECK(t.place(26_MiB).has_value());  // stitched from b and a: 66 MiB of addresses
    CHECK(t.lake.stitched() == left);
  }
}

TEST_CASE("gmlake refuses settings outside their ranges") {
  for (const std::string level : {"3", "0.5", "1e30"})
    CHECK_THROWS_WITH(PoolUnderTest("gmlake(defragment_level=" + level + ")", 1_GiB),
                      "gmlake: option 'defragment_level' is '" + level + "'; expected 0, 1, 2");
  CHECK_THROWS_WITH(PoolUnderTest("gmlake(reuse_limit=0.5)", 1_GiB),
                    "gmlake: option 'reuse_limit' is '0.5'; expected 1 or more");
}

TEST_CASE("gmlake refuses more memory than it can count page by page") {
  PoolUnderTest t{"gmlake", kNoLimit};
  CHECK_THROWS_WITH(t.place(Bytes{std::int64_t{8} << 50}),
                    "gmlake: 8192 TiB in pages of 2 MiB; expected at most 4 TiB, since each page is counted");
}

TEST_CASE("no two buffers have the same memory, even if blocks are stitched all the time") {
  std::int64_t windows = 0;
  for (std::uint64_t seed = 1; seed <= (tests::kOptimised ? 10 : 2); ++seed) {
    TraceData data = tests::random_trace(seed, 60 + static_cast<int>(seed) * 20).data();
    for (Buffer& buffer : data.buffers) buffer.size = buffer.size * 1'024;  // sizes up to 16 MiB
    const Trace trace{std::move(data)};
    for (const char* pool : {"gmlake(fragment_limit=4MiB)", "gmlake(fragment_limit=4MiB,reuse_limit=2,auto_gc=64MiB)",
                             "gmlake(fragment_limit=2MiB,defragment_level=1)"})
      for (const char* policy : {"none", "lru-swap", "dtr-local"})
        for (const double fraction : {0.6, 0.9, 1.1, 1.3, 3.0}) {
          INFO(fmt::format("seed {} pool {} policy {} capacity {}x", seed, pool, policy, fraction));
          RunSpec spec{.pool = pool, .policy = policy};
          spec.capacity = Bytes{static_cast<std::int64_t>(fraction * static_cast<double>(trace.ideal_peak().count()))};
          const Result result = simulate(trace, spec, true);
          if (result.outcome != Outcome::kOk) continue;
          CHECK(replay(trace, spec, result.realised) == result.totals);
          CHECK(result.totals.footprint <= spec.capacity);
          const HostReport report = execute_on_host(trace, result.realised, {.threads = false, .arena = 1_MiB});
          INFO(report.message);
          CHECK(report.outcome == HostOutcome::kOk);
          for (const Action& action : result.realised.actions) windows += action.verb == Verb::kMap;
        }
  }
  CHECK(windows > 100);  // otherwise the runs above test nothing
}

}  // namespace tidepool::gmlake_test
