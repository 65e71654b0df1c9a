// A run as a profiler would have recorded it: the input of exporters of timelines and of allocator histories. It comes
// from a trace (measured) or a plan (simulated).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "traces/trace.hpp"

namespace tidepool {

enum class RecordedAction : std::uint8_t { kAlloc, kFree, kSegmentAlloc, kSegmentFree, kSegmentMap, kSegmentUnmap };

/// One allocation or free of device memory.
struct RecordedBlock {
  RecordedAction action = RecordedAction::kAlloc;
  Nanos time;
  std::int64_t address = -1;  ///< -1 = not known
  Bytes size;
  std::uint16_t device = 0;
  StreamId stream;   ///< a lane
  std::string name;  ///< of the buffer
  std::string line;  ///< of the user's code that allocated it, as in model.py:88; "" = not known
};

struct RecordedOp {
  std::string name;
  OpKind kind = OpKind::kKernel;
  StreamId stream;  ///< a lane
  std::uint16_t device = 0;
  Nanos launch;  ///< later than that of every op before it
  Nanos start;
  Nanos duration;
};

struct RecordedRange {
  std::string name;
  Nanos start, end;
};

/// Times are ns since the start, sizes bytes. Each list is in the order of the program.
struct Recording {
  std::vector<std::string> lanes;       ///< streams, and copy engines if copies have lanes of their own
  std::vector<RecordedBlock> existing;  ///< allocated before the start
  std::vector<RecordedBlock> memory;
  std::vector<RecordedOp> ops;
  std::vector<Order> orders;          ///< between ops of different lanes
  std::vector<RecordedRange> ranges;  ///< iterations and others
  std::map<std::string, std::string> meta;
};

/// The recording in a trace. Missing times are made up and keep the order: an op starts when its stream is free, is
/// launched when it starts, and memory is allocated and freed 1 ns after the step or mark before. A mark is 1 ns after
/// the step or mark before. A recorded launch that is not later than the step before is moved to 1 ns after that, and
/// one before the mark that precedes it to this mark. An iteration becomes a range, unless a range of the same name
/// begins at the next mark: then it was read from this range.
Recording recording_of(const Trace& trace);

/// Blocks that are live at the end, by device and address: existing and allocated ones, without those that were freed.
/// Addresses must be known.
std::vector<RecordedBlock> live_at_end(const Recording& recording);

/// The number of each lane for formats that need one: 7 for "7" and "1:7"; for other names, the position of the lane or
/// the next number that no lane has. Two lanes with ops or buffers of one device have different numbers, so only one
/// keeps the number in both names.
std::vector<std::int64_t> lane_numbers(const Recording& recording);

/// @throws InputError  "2 of the allocations and frees have no address, which this form needs; ...", if some lack
///                     theirs
void require_addresses(const Recording& recording);

}  // namespace tidepool
