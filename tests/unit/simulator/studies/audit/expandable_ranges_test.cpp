#include "simulator/studies/audit/expandable_ranges.hpp"

#include "simulator/studies/audit/audit.hpp"
#include "simulator/studies/audit/start_state.hpp"
#include "tests/catch.hpp"

namespace tidepool::expandable_ranges_test {

namespace {

using enum SnapshotAction;
constexpr std::int64_t kMiB = 1 << 20;

SnapshotEvent event(SnapshotAction action, std::int64_t address, Bytes size, std::int64_t stream = 0) {
  return {.action = action, .address = address, .size = size, .stream = stream, .pool = {}};
}

struct Log {
  TorchSnapshot snapshot;

  explicit Log(std::vector<SnapshotEvent> events) {
    snapshot.settings.expandable_segments = true;
    snapshot.device_traces.push_back(std::move(events));
  }
  /// The log ends with these pages mapped, and these blocks in use.
  Log& ends_with(const Block& pages, bool small, std::int64_t stream, const std::vector<Block>& used) {
    SnapshotSegment segment{.address = pages.offset.count(),
                            .size = pages.size,
                            .stream = stream,
                            .small = small,
                            .expandable = true,
                            .pool = {},
                            .blocks = {}};
    for (const Block& block : used)
      segment.blocks.push_back({block.offset.count(), block.size, {}, BlockState::kActive});
    snapshot.segments.push_back(std::move(segment));
    return *this;
  }

  StartState start() const { return start_state(snapshot, 0, recorded_config(snapshot.settings)); }
  DeviceAudit audit() const { return audit_snapshot(snapshot, recorded_config(snapshot.settings)).total(); }
};

}  // namespace

TEST_CASE("a range lives until its last page is unmapped, and another may have its addresses afterwards") {
  // When the log begins, stream 0 has 20 MiB with two blocks. Later the same addresses belong to stream 1.
  Log log{{event(kAlloc, 4 * kMiB, 4_MiB), event(kFreeRequested, 0, 4_MiB), event(kFreeCompleted, 0, 4_MiB),
           event(kFreeRequested, 4 * kMiB, 4_MiB), event(kFreeCompleted, 4 * kMiB, 4_MiB),
           event(kSegmentUnmap, 0, 20_MiB), event(kSegmentMap, 0, 20_MiB, 1), event(kAlloc, 0, 4_MiB, 1)}};
  log.ends_with({0_B, 20_MiB}, false, 1, {{0_B, 4_MiB}});
  const StartState start = log.start();
  REQUIRE(start.ranges.size() == 2);
  CHECK(start.ranges[0].key.stream == 0);
  CHECK(start.ranges[0].begun == std::nullopt);
  CHECK(start.ranges[0].mapped == std::vector{Block{0_B, 20_MiB}});
  CHECK(start.ranges[1].key.stream == 1);
  CHECK(start.ranges[1].begun == 6);
  CHECK(start.ranges[1].place.offset == 0_B);
  CHECK(start.ranges[1].mapped.empty());
  REQUIRE(start.segments.size() == 1);
  CHECK(start.segments[0].key.stream == 0);
  CHECK(log.audit().exact());
}

TEST_CASE("a range is bounded only by pages that are mapped at the same time") {
  // The pages at 40 MiB are mapped after those at 0 are gone; those at 580 MiB are mapped before.
  Log log{{event(kSegmentMap, 0, 20_MiB), event(kAlloc, 0, 4_MiB), event(kSegmentMap, 580 * kMiB, 20_MiB, 1),
           event(kAlloc, 580 * kMiB, 4_MiB, 1), event(kFreeRequested, 0, 4_MiB), event(kFreeCompleted, 0, 4_MiB),
           event(kSegmentUnmap, 0, 20_MiB), event(kSegmentMap, 40 * kMiB, 20_MiB, 2),
           event(kAlloc, 40 * kMiB, 4_MiB, 2)}};
  log.ends_with({40_MiB, 20_MiB}, false, 2, {{40_MiB, 4_MiB}});
  log.ends_with({580_MiB, 20_MiB}, false, 1, {{580_MiB, 4_MiB}});
  const StartState start = log.start();
  CHECK(start.range_size == 540_MiB);
  REQUIRE(start.ranges.size() == 3);
  CHECK(start.ranges[0].place == Block{0_B, 540_MiB});
  CHECK(start.ranges[1].place == Block{580_MiB, 540_MiB});
  CHECK(start.ranges[2].place == Block{40_MiB, 540_MiB});
  CHECK(log.audit().exact());
}

TEST_CASE("a range in which no page could be mapped belongs to its own stream") {
  Log log{{event(kOom, 0, 60_MiB), event(kSegmentMap, 0, 20_MiB, 1), event(kAlloc, 0, 4_MiB, 1),
           event(kSegmentMap, 580 * kMiB, 20_MiB), event(kAlloc, 580 * kMiB, 4_MiB)}};
  log.ends_with({0_B, 20_MiB}, false, 1, {{0_B, 4_MiB}});
  log.ends_with({580_MiB, 20_MiB}, false, 0, {{580_MiB, 4_MiB}});
  CHECK(log.audit().exact());
}

TEST_CASE("the size of a block shows whether the pages that are unmapped under it were small") {
  for (const Bytes size : {1_MiB, 1_MiB + 512_B}) {
    const Log log{{event(kFreeRequested, 0, size), event(kFreeCompleted, 0, size), event(kSegmentUnmap, 0, 20_MiB)}};
    const StartState start = log.start();
    REQUIRE(start.segments.size() == 1);
    CHECK(start.segments[0].key.small == (size == 1_MiB));
    CHECK(start.segments[0].place.offset == 0_B);
    CHECK(log.audit().exact());
  }
}

TEST_CASE("pages of unknown size are small if they are adjacent to small pages") {
  for (const Bytes next : {20_MiB, 22_MiB}) {
    Log log{{event(kSegmentUnmap, 0, 20_MiB)}};
    log.ends_with({next, 2_MiB}, true, 0, {{next, 1_MiB}});
    const StartState start = log.start();
    REQUIRE(start.segments.size() == (next == 20_MiB ? 1 : 2));
    CHECK(start.segments[0].key.small == (next == 20_MiB));
    CHECK(log.audit().exact());
  }
}

TEST_CASE("pages that are unmapped before smaller ones of the same stream are large") {
  // Small pages are unmapped last, the smallest block first. A block with 20 MiB of whole pages is larger than one with
  // 16 MiB, and may be smaller than one with 18 MiB.
  for (const Bytes next : {16_MiB, 18_MiB}) {
    Log log{{event(kSegmentUnmap, 0, 20_MiB), event(kSegmentUnmap, 600 * kMiB, next)}};
    log.ends_with({20_MiB, 2_MiB}, true, 0, {{20_MiB, 1_MiB}});
    const StartState start = log.start();
    REQUIRE(!start.segments.empty());
    CHECK(start.segments[0].key.small == (next == 18_MiB));
  }
}

TEST_CASE("a retry may take memory that it has waited for without logging further events") {
  // In use: 0 to 5 MiB, the 50 MiB behind that, and 55 to 60 MiB. When the 50 MiB are freed, the whole pages in them
  // are unmapped; 15 MiB stay free on each side. A retry takes the block before the first unmapped pages. A request
  // after an empty_cache takes the block that cannot grow.
  for (const Bytes address : {5_MiB, 40_MiB, 41_MiB}) {
    Log log{{event(kSegmentMap, 0, 20_MiB), event(kAlloc, 0, 5_MiB), event(kSegmentMap, 20 * kMiB, 40_MiB),
             event(kAlloc, 5 * kMiB, 50_MiB), event(kAlloc, 55 * kMiB, 5_MiB), event(kFreeRequested, 5 * kMiB, 50_MiB),
             event(kFreeCompleted, 5 * kMiB, 50_MiB), event(kSegmentUnmap, 20 * kMiB, 20_MiB),
             event(kAlloc, address.count(), 6_MiB)}};
    std::vector<Block> low{{0_B, 5_MiB}}, high{{55_MiB, 5_MiB}};
    if (address == 5_MiB)
      low.push_back({address, 6_MiB});
    else
      high.insert(high.begin(), {address, 6_MiB});
    log.ends_with({0_B, 20_MiB}, false, 0, low).ends_with({40_MiB, 20_MiB}, false, 0, high);
    CHECK(log.audit().exact() == (address != 41_MiB));
  }
}

}  // namespace tidepool::expandable_ranges_test
