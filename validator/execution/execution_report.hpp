// Result of executing a plan on real memory: wrong bytes and times.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "simulator/plan.hpp"
#include "traces/trace.hpp"
#include "validator/execution/execute.hpp"
#include "validator/execution/fingerprint.hpp"

namespace tidepool {

/// The first read, in issue order, whose content differs from the program's without any policy.
struct Corruption {
  std::size_t action = 0;  ///< index in the plan; for an output that is wrong at the end, the number of actions
  OpId op = {};            ///< the reading op; none for outputs
  BufferId buffer = {};
  VersionId version = {};
  Bytes offset = {};  ///< first wrong byte within the buffer, rounded down to the scale
  std::uint64_t expected = 0;
  std::uint64_t found = 0;
  std::string found_is;  ///< what identify() says, as in "the content of version 5 (buffer 2)" or "cleared memory"
};

/// A text about the content that was found, for Corruption::found_is.
/// @param unit  bytes that one word stands for
std::string identify(const Trace& trace, const Corruption& corruption, const Expected& expected, Bytes unit);

/// "run op 2 before op 2: reads version 0 (buffer 0): byte 2048 is wrong; expected ..., found ..., which is ..."
std::string describe(const Plan& plan, const Corruption& corruption);

/// "d2h (swap out version 0 before op 1)"
std::string describe_task(const Trace& trace, const Plan& plan, const LaneTable& lanes, std::uint32_t lane,
                          std::size_t action);

/// "A waits for B, and nothing has ended for 60 s"
std::string describe_stuck(const std::string& waiting, const std::string& awaited, Nanos patience);

/// Adds to a count; the sum stops at the largest number instead of overflowing.
void add_capped(Bytes& sum, Bytes more);

/// The work of one lane.
struct LaneReport {
  std::string name;
  std::int64_t tasks = 0;
  Bytes bytes = {};  ///< of versions read and written
  Nanos busy = {};   ///< wall time in its tasks
};

/// Begin and end of one op or copy, since the begin of the run. In a scaled run, divided by the time scale.
struct TaskTime {
  std::size_t action = 0;  ///< index in the plan
  TaskKind kind = TaskKind::kRun;
  std::uint32_t lane = 0;
  OpId op = {};            ///< kRun only
  VersionId version = {};  ///< copies only
  Nanos begin = {}, end = {};
};

enum class ExecutionOutcome : std::uint8_t {
  kOk,
  kCorrupt,
  kStuck,        ///< no task ended for too long (host), or the run took too long (cuda)
  kOutOfMemory,  ///< the device or the host refused memory
  kDeviceError,  ///< the device or its driver failed
};
std::string_view to_text(ExecutionOutcome outcome);

struct ExecutionReport {
  ExecutionOutcome outcome = ExecutionOutcome::kOk;
  std::string message;  ///< why, unless ok
  Bytes corrupt = {};   ///< bytes read that differed from the expected ones
  std::optional<Corruption> first;
  Bytes peak = {};  ///< largest sum of bytes of the versions that had places on the device at one time
  Bytes read = {};  ///< bytes compared
  Bytes unit = {};  ///< bytes that one word stood for, at most
  Nanos wall = {};
  std::optional<Nanos> measured;  ///< time of the run as the program would see it, if time was measured
  std::vector<LaneReport> lanes;  ///< one for each stream, then d2h, h2d, upkeep
  std::vector<TaskTime> times;    ///< of ops and copies, by lane and then by begin; empty if not recorded
};

}  // namespace tidepool
