// A plan as a flat program for a device: the commands of each stream in order, and the events between streams.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "simulator/plan.hpp"
#include "traces/trace.hpp"
#include "validator/execution/execute.hpp"
#include "validator/execution/fingerprint.hpp"

namespace tidepool {

enum class DeviceCommandKind : std::uint8_t {
  kWait,    ///< the stream continues when the event has happened, as recorded last before this command
  kRecord,  ///< the event happens when all earlier commands of the stream have ended
  kStep,    ///< the stream executes a step
};

struct DeviceCommand {
  DeviceCommandKind kind = DeviceCommandKind::kStep;
  std::uint32_t stream = 0;  ///< a lane of LaneTable
  std::uint32_t number = 0;  ///< of the event or the step
  bool operator==(const DeviceCommand&) const = default;
};

/// Words of memory, of the device or of the host, that hold a content, see Content.
struct WordRange {
  bool on_host = false;
  std::size_t word = 0;     ///< the first one
  std::size_t count = 0;    ///< words of the content; 0: an empty buffer
  std::size_t covered = 0;  ///< words over which it is repeated, at least `count`
  VersionId version = {};
  VersionId recorded = {};  ///< the same version in the recorded step, or none: see Reference
};

/// One task with its data that is known before the run.
struct DeviceStep {
  TaskKind kind = TaskKind::kRun;
  std::uint32_t lane = 0;
  std::size_t action = 0;       ///< as in Task
  OpId op = {};                 ///< kRun only
  std::uint64_t seed = 0;       ///< kRun: op_seed() of this launch
  std::uint32_t iteration = 0;  ///< index in DeviceProgram::expected
  std::uint32_t first = 0;      ///< in DeviceProgram::stretches: its reads, then its writes
  std::uint32_t reads = 0, writes = 0;
};

struct DeviceProgram {
  LaneTable lanes = {};
  std::vector<DeviceCommand> commands = {};  ///< in issue order: no command waits for one after it
  std::vector<DeviceStep> steps = {};
  std::vector<WordRange> stretches = {};
  std::vector<std::shared_ptr<const Expected>> expected = {};  ///< by iteration
  std::uint32_t events = 0;
  std::size_t device_words = 0;  ///< memory of the device, in one piece
  std::size_t host_words = 0;    ///< pinned memory of the host, in one piece
  Bytes unit = {};               ///< bytes that one word stands for, at most
  Bytes peak = {};               ///< as execute() returns it
};

struct DeviceProgramOptions {
  bool copy_on_write = false;                ///< see Assumptions::copy_on_write
  bool content = true;                       ///< fill, clear and check; without it, only ops and copies
  Bytes least_unit{8};                       ///< least bytes that a word stands for; 8: memory has its real size
  Bytes aim = Bytes{std::int64_t{1} << 62};  ///< larger plans are scaled down to this much memory, see Scale
};

/// Places of the device have the plan's addresses, without the addresses that no place covers: these take no memory.
/// Host copies, and places without an address, are packed: memory is reused as soon as its place has ended in issue
/// order, and the new owner waits for all tasks that used it.
/// @throws PlanError   for a plan that no memory could execute, naming the action
/// @throws InputError  for a plan that has more pieces than `aim` has words
DeviceProgram make_program(const Trace& trace, const Plan& plan, const DeviceProgramOptions& options);

/// Refuses a program with a word range beyond its memory, or with an unknown number of a stream, an event or a step.
/// @throws PlanError  "step 12 touches words [64, 128) of 100 on the device"
void require_sound(const DeviceProgram& program);

}  // namespace tidepool
