// Any events and segments as an allocator's log. The audit reproduces them, reports a difference, or refuses them with
// InputError.
#include "simulator/studies/audit/audit.hpp"

#include <cstddef>
#include <cstdint>

#include "traces/base/error.hpp"

using namespace tidepool;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // The first byte has the settings. Then five bytes are one record: kind, stream and device (1), address (2), size
  // (2). There are few addresses, so that records refer to the same ones.
  TorchSnapshot snapshot;
  snapshot.device_traces.resize(2);
  if (size > 0) {
    snapshot.settings.expandable_segments = (data[0] & 1) != 0;
    if ((data[0] & 2) != 0) snapshot.settings.max_split_size = 30_MiB;
    if ((data[0] & 4) != 0) snapshot.settings.roundup_power2_divisions.fill(data[0] >> 3);
    ++data;
    --size;
  }
  for (; size >= 5; data += 5, size -= 5) {
    const int kind = data[0] % 16;
    const std::int64_t stream = (data[0] >> 4) & 3;
    const std::int64_t address = (data[1] * std::int64_t{1 << 20}) + data[2] * std::int64_t{512};
    const Bytes bytes{std::int64_t{data[3]} << (data[4] % 24)};
    if (kind < 10) {
      snapshot.device_traces[data[0] >> 7].push_back({.action = static_cast<SnapshotAction>(kind),
                                                      .address = address,
                                                      .size = bytes,
                                                      .stream = stream,
                                                      .pool = {}});
    } else if (kind < 13 || snapshot.segments.empty()) {
      snapshot.segments.push_back({.device = data[0] >> 7,
                                   .address = address,
                                   .size = bytes,
                                   .stream = stream,
                                   .small = kind == 10,
                                   .expandable = kind == 11,
                                   .pool = {.owner = data[4] >> 7, .number = 0},
                                   .blocks = {}});
    } else {
      snapshot.segments.back().blocks.push_back(
          {address, bytes, bytes, kind == 13 ? BlockState::kInactive : BlockState::kActive});
    }
  }
  try {
    audit_snapshot(snapshot, recorded_config(snapshot.settings));
  } catch (const InputError&) {
  }
  return 0;
}
