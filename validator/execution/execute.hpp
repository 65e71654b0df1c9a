// Conversion of a plan to tasks on lanes that wait for each other, shared by all backends on real memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "simulator/plan.hpp"
#include "traces/trace.hpp"
#include "validator/execution/places.hpp"

namespace tidepool {

/// Lanes by number: the compute streams of the trace, one copy engine for each direction, and the lane "upkeep" for
/// work that is not part of the program: filling in initial content, clearing places that ended, checking outputs.
struct LaneTable {
  std::uint32_t streams = 1;
  std::uint32_t d2h() const { return streams; }
  std::uint32_t h2d() const { return streams + 1; }
  std::uint32_t upkeep() const { return streams + 2; }
  std::uint32_t count() const { return streams + 3; }
  /// "stream 7" (the stream's name), "d2h", "h2d" or "upkeep".
  std::string name(const Trace& trace, std::uint32_t lane) const;
};

/// A root version's content at a place, on the device or on the host.
struct Operand {
  VersionId version = {};
  std::uint32_t place = 0;  ///< as given to Backend::open
};

enum class TaskKind : std::uint8_t {
  kFill,  ///< the initial content of a version is written to writes[0]
  kRun,   ///< an op reads `reads` (one for each use that reads and is no view, in use order) and then writes `writes`
          ///< (one for each output; it may be a place that is read)
  kCopy,  ///< reads[0] is copied to writes[0], both on the device
  kSwapOut,  ///< reads[0] on the device is copied to writes[0] on the host
  kSwapIn,   ///< reads[0] on the host is copied to writes[0] on the device
  kClear,    ///< writes[0] has no valid content any more
  kCheck,    ///< reads[0] must have the content of the program's output
};

/// One task on one lane. The spans are valid during Backend::submit only.
struct Task {
  TaskKind kind = TaskKind::kRun;
  std::uint32_t lane = 0;
  std::uint32_t number = 0;     ///< counts from 1 in its lane
  std::size_t action = 0;       ///< index in the plan; for checks at the end, the number of actions
  OpId op = {};                 ///< kRun: the op
  std::span<const Wait> waits;  ///< for other lanes; none for a task up to which this lane has waited already
  std::span<const Operand> reads;
  std::span<const Operand> writes;
};

/// Executes tasks on some memory. All calls come from one thread, in issue order.
class Backend {
 public:
  virtual ~Backend() = default;
  /// A place begins: [offset, offset + size) of the device, memory of its own if offset is kNoAddress, or host memory.
  virtual void open(std::uint32_t place, Bytes offset, Bytes size, bool on_host) = 0;
  /// Called when all tasks that use the place have been submitted (but may not have ended). open() may reuse the
  /// number.
  virtual void close(std::uint32_t place) = 0;
  virtual void submit(const Task& task) = 0;
  /// The step begins again: from now on, versions have the expected contents of the next iteration.
  virtual void next_iteration() = 0;
};

struct ExecuteOptions {
  bool copy_on_write = false;  ///< see Assumptions::copy_on_write
  bool clear = true;           ///< clear places when they end, so that a late reader finds nothing
};

/// Walks `plan` in issue order and submits every task with its waits. A task waits for the tasks that wrote its inputs,
/// for the tasks that used the memory that it writes (for any version), and for the orders of the trace. A task on a
/// stream also waits for the copies that the plan awaits there. A swap-out or swap-in also waits for all earlier tasks
/// on the stream of the op before which it was planned. A task waits only for tasks submitted before it, so the
/// execution cannot deadlock. O(uses + lanes) per action, O(log n) per place, O(versions) per unmapping and iteration.
/// @return  largest sum of bytes of the versions that have places on the device at one time, in issue order
/// @throws PlanError  naming the action, for a plan that no memory could execute, as in
///                    "run op 5 before op 5: version 3 has no place to be read from"
Bytes execute(const Trace& trace, const Plan& plan, const ExecuteOptions& options, Backend& backend);

/// Refuses ids that the trace does not have, views, negative sizes, and sizes and addresses from 2^62 on.
/// @throws PlanError  naming the action
void require_known(const Trace& trace, const Plan& plan);

}  // namespace tidepool
