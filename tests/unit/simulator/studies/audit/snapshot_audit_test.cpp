#include "simulator/studies/audit/audit.hpp"
#include "tests/catch.hpp"
#include "tests/unit/recorded_allocator.hpp"

namespace tidepool::snapshot_audit_test {

using tidepool::testing::RecordedAllocator;

namespace {

struct Kind {
  const char* name;
  bool expandable;
  Bytes max_split_size;
  std::uint32_t delay;  // one of `delay` frees waits for another stream; 0: none

  CachingConfig config() const {
    CachingConfig config;
    config.expandable_segments = expandable;
    config.max_split_size = max_split_size;
    return config;
  }
};
constexpr Kind kKinds[] = {{" native ", false, CachingConfig::kUnlimited, 5},
                           {" with a split limit ", false, 30_MiB, 0},
                           {" expandable ", true, CachingConfig::kUnlimited, 5}};
constexpr std::uint32_t kSeeds = 10;

AuditReport audit(const TorchSnapshot& snapshot) {
  return audit_snapshot(snapshot, recorded_config(snapshot.settings));
}

std::string describe(const DeviceAudit& audit) {
  return audit.first_mismatch.value_or("no mismatch") + "; start state " + audit.start_state;
}

}  // namespace

TEST_CASE("a log that begins with the first event is explained completely") {
  for (const Kind& kind : kKinds)
    for (std::uint32_t seed = 1; seed <= kSeeds; ++seed) {
      RecordedAllocator recorded{kind.config(), 500_MiB, seed};
      recorded.run(3'000, 2, kind.delay);
      CHECK(recorded.count(SnapshotAction::kOom) > 0);
      CHECK(recorded.count(kind.expandable ? SnapshotAction::kSegmentUnmap : SnapshotAction::kSegmentFree) > 0);
      const DeviceAudit total = audit(recorded.snapshot(0)).total();
      INFO("seed " << seed << kind.name << describe(total));
      CHECK(total.exact());
      CHECK(total.start_state == "determined");
      CHECK(total.allocations == static_cast<std::int64_t>(recorded.count(SnapshotAction::kAlloc)));
    }
}

TEST_CASE("a log that begins at any event is explained from there on") {
  for (const Kind& kind : kKinds)
    for (std::uint32_t seed = 1; seed <= kSeeds; ++seed) {
      RecordedAllocator recorded{kind.config(), 500_MiB, seed};
      recorded.run(2'000, 2, kind.delay);
      for (std::size_t first = 1; first < recorded.events(); first += 97) {
        // With a split limit, a log that begins within a request may show only a part of the memory that the request
        // has released, and the audit cannot know this.
        while (kind.max_split_size != CachingConfig::kUnlimited && !recorded.begins_request(first)) ++first;
        const DeviceAudit total = audit(recorded.snapshot(first)).total();
        INFO("seed " << seed << kind.name << "from " << first << ": " << describe(total));
        CHECK(total.exact());
      }
    }
}

TEST_CASE("the audit of a damaged log ends with a result, not in an endless search") {
  for (const Kind& kind : kKinds)
    for (std::uint32_t seed = 1; seed <= 40; ++seed) {
      RecordedAllocator recorded{kind.config(), 500_MiB, seed};
      recorded.run(300, 3, kind.delay);
      TorchSnapshot snapshot = recorded.snapshot(seed);
      std::mt19937 random{seed};
      auto& events = snapshot.device_traces[0];
      for (std::uint32_t i = 0; i < 1 + seed % 5; ++i) {
        SnapshotEvent& event = events[random() % events.size()];
        const SnapshotEvent& other = events[random() % events.size()];
        switch (random() % 6) {
          case 0:
            event.action = other.action;
            break;
          case 1:
            event.address = other.address;
            break;
          case 2:
            event.size = other.size;
            break;
          case 3:
            event.stream = other.stream;
            break;
          case 4:
            event.address += static_cast<std::int64_t>(random() % 4'096);
            break;
          default:
            if (!snapshot.segments.empty())
              snapshot.segments[random() % snapshot.segments.size()].size = Bytes{static_cast<std::int64_t>(random())};
        }
      }
      const DeviceAudit total = audit(snapshot).total();
      CHECK(total.matched <= total.allocations);
      CHECK(total.segment_matched <= total.segment_allocations);
    }
}

TEST_CASE("a log with more streams than a program can have is refused") {
  TorchSnapshot snapshot;
  auto& events = snapshot.device_traces.emplace_back();
  for (std::int64_t stream = 0; stream < 1'001; ++stream)
    events.push_back({.action = SnapshotAction::kAlloc, .address = 0, .size = 1_B, .stream = stream, .pool = {}});
  CHECK_THROWS_WITH(audit(snapshot), "device 0: 1001 streams and pools; expected at most 1000");
}

}  // namespace tidepool::snapshot_audit_test
