#include "simulator/studies/audit/start_state.hpp"

#include "simulator/studies/audit/audit.hpp"
#include "tests/catch.hpp"

namespace tidepool::start_state_test {

namespace {

constexpr std::int64_t kMiB = 1 << 20;

SnapshotEvent event(SnapshotAction action, std::int64_t address, Bytes size) {
  return {.action = action, .address = address, .size = size, .pool = {}};
}

/// A large native segment of 40 MiB at 0. At the end, no block of it is in use. When the trace begins, a block of
/// 4 MiB at 0 and one of 4 MiB at `next` are in use.
TorchSnapshot with_two_blocks(std::int64_t next, std::vector<SnapshotEvent> between) {
  TorchSnapshot snapshot;
  snapshot.segments.push_back({.size = 40_MiB, .pool = {}, .blocks = {{0, 40_MiB, {}, BlockState::kInactive}}});
  auto& events = snapshot.device_traces.emplace_back(std::move(between));
  events.push_back(event(SnapshotAction::kFreeCompleted, 0, 4_MiB));
  events.push_back(event(SnapshotAction::kFreeCompleted, next, 4_MiB));
  return snapshot;
}

StartState state_of(const TorchSnapshot& snapshot) { return start_state(snapshot, 0, {}); }

}  // namespace

TEST_CASE("a gap of up to 1 MiB behind a block of a large segment can only be slack of the block") {
  const StartState state = state_of(with_two_blocks(5 * kMiB, {}));
  REQUIRE(state.segments.size() == 1);
  REQUIRE(state.segments[0].used.size() == 2);
  CHECK(state.segments[0].used[0].size == 5_MiB);
  CHECK(state.segments[0].used[0].most_slack == 0_B);
}

TEST_CASE("if the gap behind a block is larger than 1 MiB, its slack is unknown, but more than 1 MiB must remain") {
  StartState state = state_of(with_two_blocks(5 * kMiB + 1'024, {}));
  CHECK(state.segments[0].used[0].size == 4_MiB);
  CHECK(state.segments[0].used[0].most_slack == 512_B);
  CHECK(state.ambiguous().size() == 2);  // behind the second are 31 MiB - 1 KiB
  CHECK(state.ambiguous()[1] == AmbiguousBlock{5 * kMiB + 1'024, 4_MiB, 1_MiB});
  CHECK(state.text() == "ambiguous: 2 blocks, first at 0x0");
  state = state_of(with_two_blocks(5 * kMiB + 512, {}));
  CHECK(state.text() == "ambiguous: 1 block, first at 0x500200");
}

TEST_CASE("an allocation directly behind a block shows its slack") {
  // The free block begins at 4 MiB + 1,024 B, since its lower part is taken first.
  const StartState state =
      state_of(with_two_blocks(16 * kMiB, {event(SnapshotAction::kAlloc, 4 * kMiB + 1'024, 2_MiB),
                                           event(SnapshotAction::kFreeCompleted, 4 * kMiB + 1'024, 2_MiB)}));
  CHECK(state.segments[0].used[0].size == 4_MiB + 1'024_B);
  CHECK(state.text() == "ambiguous: 1 block, first at 0x1000000");
}

TEST_CASE("a block gets a slack if the model's answer would be wrong without it") {
  // Two blocks are free: 8 MiB from 4 MiB on, less the slack of the first block, and 24 MiB from 16 MiB on. A request
  // of 8 MiB - 512 B was placed at 16 MiB, so the first free block was too small for it.
  TorchSnapshot snapshot;
  snapshot.segments.push_back({.size = 40_MiB, .pool = {}, .blocks = {{12 * kMiB, 4_MiB, {}, BlockState::kActive}}});
  snapshot.device_traces.push_back({event(SnapshotAction::kAlloc, 16 * kMiB, 8_MiB - 512_B),
                                    event(SnapshotAction::kFreeCompleted, 16 * kMiB, 8_MiB - 512_B),
                                    event(SnapshotAction::kFreeCompleted, 0, 4_MiB)});
  const AuditReport report = audit_snapshot(snapshot, {});
  CHECK(report.exact());
  REQUIRE(report.devices[0].ambiguous.size() == 1);
  CHECK(report.devices[0].ambiguous[0] == AmbiguousBlock{0, 4_MiB + 1_KiB, 1_MiB - 1_KiB});
}

TEST_CASE("an audit gives the peaks of allocated and of reserved memory, with slack") {
  // As above: 4 MiB until the end, 4 MiB + 1 KiB at 0 until the last event, and 8 MiB - 512 B in between.
  TorchSnapshot snapshot;
  snapshot.segments.push_back({.size = 40_MiB, .pool = {}, .blocks = {{12 * kMiB, 4_MiB, {}, BlockState::kActive}}});
  snapshot.device_traces.push_back({event(SnapshotAction::kAlloc, 16 * kMiB, 8_MiB - 512_B),
                                    event(SnapshotAction::kFreeCompleted, 16 * kMiB, 8_MiB - 512_B),
                                    event(SnapshotAction::kFreeCompleted, 0, 4_MiB)});
  const AuditReport report = audit_snapshot(snapshot, {});
  REQUIRE(report.devices[0].peaks);
  CHECK(report.devices[0].peaks->allocated == 16_MiB + 512_B);
  CHECK(report.devices[0].peaks->reserved == 40_MiB);

  snapshot.device_traces[0][0].address = 1;  // no allocator gives this address
  CHECK_FALSE(audit_snapshot(snapshot, {}).devices[0].peaks);
}

TEST_CASE("blocks of small segments have no slack") {
  TorchSnapshot snapshot;
  snapshot.segments.push_back({.size = 2_MiB, .small = true, .pool = {}, .blocks = {}});
  snapshot.device_traces.push_back({event(SnapshotAction::kFreeCompleted, 0, 1_B)});
  const StartState state = state_of(snapshot);
  CHECK(state.text() == "determined");
  CHECK(state.segments[0].used[0].size == 512_B);
}

TEST_CASE("events that contradict the final state are reported") {
  TorchSnapshot snapshot = with_two_blocks(16 * kMiB, {event(SnapshotAction::kAlloc, 8 * kMiB, 2_MiB)});
  CHECK(state_of(snapshot).text() ==
        "contradiction: trace entry 0: the log does not show the end of the block at 0x800000");
  snapshot = with_two_blocks(0, {});
  CHECK(state_of(snapshot).text() == "contradiction: trace entry 0: frees a block that is in use afterwards, at 0x0");
  snapshot = with_two_blocks(50 * kMiB, {});
  CHECK(state_of(snapshot).text() == "contradiction: the block at 0x3200000 is in no segment");
  snapshot = with_two_blocks(3 * kMiB, {});
  CHECK(state_of(snapshot).text() == "contradiction: the block at 0x0 overlaps the next or its segment's end");
}

TEST_CASE("the trace entry that the model cannot explain is reported, with both answers") {
  TorchSnapshot snapshot;
  auto& events = snapshot.device_traces.emplace_back();
  events.push_back(event(SnapshotAction::kSegmentAlloc, 0, 2_MiB));
  events.push_back(event(SnapshotAction::kAlloc, 0, 512_B));
  events.push_back(event(SnapshotAction::kAlloc, 1'024, 512_B));
  snapshot.segments.push_back(
      {.size = 2_MiB,
       .small = true,
       .pool = {},
       .blocks = {{0, 512_B, {}, BlockState::kActive}, {1'024, 512_B, {}, BlockState::kActive}}});
  const DeviceAudit wrong_address = audit_snapshot(snapshot, {}).total();
  CHECK(wrong_address.matched == 1);
  CHECK(wrong_address.segment_matched == 1);
  CHECK(wrong_address.first_mismatch ==
        "device 0: trace entry 2: the trace shows alloc of 512 B at 0x400; the model gives 0x200");
  events[0].size = 4_MiB;
  snapshot.segments[0].size = 4_MiB;
  CHECK(audit_snapshot(snapshot, {}).total().first_mismatch ==
        "device 0: trace entry 0: the trace shows segment_alloc of 4194304 B at 0x0; the model asks for a segment of "
        "2097152 B");
}

}  // namespace tidepool::start_state_test
