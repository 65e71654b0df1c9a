#include "simulator/studies/audit/tune.hpp"

#include <set>

#include "simulator/registry.hpp"
#include "tests/catch.hpp"
#include "traces/builder.hpp"

namespace tidepool::tune_test {

namespace {

/// 10 MiB are placed in a free block of 100 MiB, then 150 MiB are requested. PyTorch does not split native segments of
/// max_split_size or more, and native segments never grow; expandable ones do.
Trace fragmenting() {
  TraceBuilder build;
  build.free(build.alloc({.size = 100_MiB}));
  build.alloc({.size = 10_MiB});
  build.alloc({.size = 150_MiB});
  return build.finish();
}

const TunedSetting& of(const std::vector<TunedSetting>& tuned, const std::string& conf) {
  for (const TunedSetting& one : tuned)
    if (one.setting.conf == conf) return one;
  throw std::logic_error{"no setting " + conf};
}

SnapshotEvent event(SnapshotAction action, std::int64_t address, Bytes size) {
  SnapshotEvent made;
  made.action = action;
  made.address = address;
  made.size = size;
  return made;
}

SnapshotSegment segment(int device, Bytes size) {
  SnapshotSegment made;
  made.device = device;
  made.size = size;
  return made;
}

/// 40 MiB were reserved when the recording began, then 20 MiB more. Then 50 MiB were requested while 5 MiB were free,
/// and 30 of the 60 MiB were released.
TorchSnapshot failing() {
  TorchSnapshot snapshot;
  snapshot.segments = {segment(1, 30_MiB), segment(0, 7_MiB)};
  snapshot.device_traces = {
      {event(SnapshotAction::kAlloc, 0, 1_MiB), event(SnapshotAction::kAlloc, 1 << 20, 1_MiB),
       event(SnapshotAction::kAlloc, 2 << 20, 1_MiB), event(SnapshotAction::kAlloc, 3 << 20, 1_MiB),
       event(SnapshotAction::kAlloc, 4 << 20, 1_MiB)},
      {event(SnapshotAction::kSegmentAlloc, 40 << 20, 20_MiB), event(SnapshotAction::kAlloc, 40 << 20, 20_MiB),
       event(SnapshotAction::kOom, 5 << 20, 50_MiB), event(SnapshotAction::kSegmentFree, 0, 30_MiB)}};
  return snapshot;
}

}  // namespace

TEST_CASE("the settings that are tried begin with the defaults, are all known to the pools, and differ") {
  for (const bool threshold : {false, true}) {
    const std::vector<AllocatorSetting> settings = allocator_settings(threshold);
    CHECK(settings.size() == (threshold ? 6 * 4 * 2 * 3 + 12 : 6 * 4 * 2 + 12));
    CHECK(settings.front() == AllocatorSetting{"pytorch", {}, ""});
    CHECK(settings[1].options.size() <= 1);
    std::set<std::string> confs;
    for (const AllocatorSetting& setting : settings) confs.insert(setting.conf);
    CHECK(confs.size() == settings.size());
    CHECK(tune(TraceBuilder{}.finish(), settings, 1_GiB).size() == settings.size());
  }
}

TEST_CASE("the first setting in the result would have avoided running out of memory") {
  const std::vector<TunedSetting> free = tune(fragmenting(), allocator_settings(false), kNoLimit);
  CHECK(of(free, "").reserved == 250_MiB);
  CHECK(of(free, "expandable_segments:True").reserved == 160_MiB);
  CHECK(free.front().reserved == 160_MiB);

  const std::vector<TunedSetting> tight = tune(fragmenting(), allocator_settings(true), 200_MiB);
  CHECK(of(tight, "").outcome == Outcome::kOutOfMemory);
  CHECK_FALSE(of(tight, "").message.empty());
  CHECK(of(tight, "expandable_segments:True").outcome == Outcome::kOk);
  // A block that must not be split is released as a whole.
  CHECK(of(tight, "max_split_size_mb:64").outcome == Outcome::kOk);
  CHECK(tight.front().outcome == Outcome::kOk);
  CHECK(tight.back().outcome == Outcome::kOutOfMemory);
}

TEST_CASE("a snapshot gives the reserved bytes, and the bytes that the program could use when a request failed") {
  const RecordedMemory memory = recorded_memory(failing());
  CHECK(memory == RecordedMemory{1, 60_MiB, 65_MiB, 50_MiB});
  TorchSnapshot quiet = failing();
  quiet.device_traces[1].erase(quiet.device_traces[1].begin() + 2);
  CHECK(recorded_memory(quiet) == RecordedMemory{0, 7_MiB, {}, {}});
  CHECK(recorded_memory({}) == RecordedMemory{});
}

TEST_CASE("the request that failed is tried again") {
  const Trace trace = device_trace(failing(), 1);
  REQUIRE(trace.buffers().size() == 2);
  CHECK(trace.buffers()[1].size == 50_MiB);
  CHECK(trace.ideal_peak() == 70_MiB);
  CHECK(to_trace(failing()).buffers().size() == 6);
}

}  // namespace tidepool::tune_test
