// History of a run: every op, every copy, and every stay of a buffer in device memory.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "simulator/engine/links.hpp"
#include "simulator/plan.hpp"
#include "simulator/result.hpp"
#include "simulator/run_spec.hpp"
#include "traces/trace.hpp"

namespace tidepool {

/// The reason why a stream waited before a run.
enum class Cause : std::uint8_t {
  kNothing,
  kCopyIn,     ///< it waited for content that was being copied from the host
  kCopyOut,    ///< it waited for a place that a copy to the host, or another stream, still used
  kOrder,      ///< it waited for another stream's op, or for the host's launch
  kAllocator,  ///< it waited for the device's own allocator (cudaMalloc, cudaFree)
};

struct RunSpan {
  OpId op;  ///< none: not a run; all streams wait for the allocator
  StreamId stream;
  Nanos begin, end;
  Nanos waited;  ///< waiting time, which ends at `begin`
  Cause cause = Cause::kNothing;
  bool again = false;  ///< a recomputation
};

struct CopySpan {
  VersionId version;
  Direction direction = Direction::kOut;
  bool storage = false;  ///< whether the copy is to or from the storage tier, not the host
  OpId before;           ///< position of the program when the copy was issued; none: after the last op
  Nanos issued;
  Nanos begin, end;  ///< on the link
};

enum class Arrival : std::uint8_t {
  kBefore,      ///< it existed before the step
  kAllocated,   ///< the program allocated it
  kCopiedIn,    ///< copied back from the host or the storage tier
  kRecomputed,  ///< got a place for its recomputation
  kScratch,     ///< a second copy of resident content, for one run
};

enum class Leaving : std::uint8_t {
  kFreed,    ///< the program has no further use for it
  kEvicted,  ///< a policy evicted it; the program still needs it
  kStays,    ///< it is resident when the run ends
};

/// An interval in which a buffer is in one place. In-place writes do not end it.
struct Stay {
  BufferId buffer;
  Bytes offset;  ///< kNoAddress if the pool only counts bytes
  Bytes held;    ///< rounded size of the place
  Nanos begin, end;
  Arrival arrival = Arrival::kAllocated;
  Leaving leaving = Leaving::kStays;
  OpId arrived_before, left_before;  ///< the op that the program runs next; none: after the last op
  BufferId room_for;                 ///< if evicted: the buffer that got the next place, if no op ran in between
};

/// Memory that a pool has reserved from the device.
struct ReservedSegment {
  Bytes offset, size;
  Nanos begin, end;
};

/// Bytes of resident versions by BufferKind, from `time` on.
struct MemoryPoint {
  Nanos time;
  std::array<Bytes, 7> held{};
  Bytes sum() const;
};

/// Makes the points of memory over time, as History::memory has them.
class MemoryCurve {
 public:
  void reserve(std::size_t changes) { points_.reserve(changes); }
  /// Adds bytes of a kind from `time` on; times must not decrease.
  void change(Nanos time, std::size_t kind, Bytes bytes);
  std::vector<MemoryPoint> finish() { return std::move(points_); }

 private:
  std::vector<MemoryPoint> points_;
  MemoryPoint now_;
  std::size_t points_now_ = 0;  // at the end of points_, with the current time
};

/// The events of a run. The time of an action is the time at which the program reaches it and its stream is free. A
/// place is in use from the action that begins it to the action that ends it. So two stays never overlap, and the
/// largest sum of bytes is Totals::peak.
struct History {
  std::vector<RunSpan> runs;     ///< in issue order
  std::vector<CopySpan> copies;  ///< in issue order
  std::vector<Stay> stays;       ///< in the order of their beginnings
  /// One point for each time at which the sum changes, with the sum after all changes at this time. If the sum was
  /// larger between these changes, a point with that largest sum comes before it. The largest sum of all is
  /// Totals::peak.
  std::vector<MemoryPoint> memory;
  std::vector<ReservedSegment> segments;       ///< in the order of their beginnings
  std::vector<Nanos> iterations;               ///< beginning of each iteration but the first
  std::vector<Nanos> exposed_in, exposed_out;  ///< by version, in the last iteration: compute's wait for its copies
  Nanos begin, end;
  bool counted = false;  ///< the trace has no durations: times count runs, allocs and frees
  Totals totals;         ///< as simulate() reports them
};

/// Replays `plan`, which simulate() has made. The plan may end where the run ended early. O(actions log n).
/// @param trace  PlannedStep::trace() of the plan
History history_of(const Trace& trace, const RunSpec& spec, const Plan& plan);

/// The last iterations of a history, with times since the first of them began. Copies and places that began earlier
/// begin at time 0; runs that began earlier are left out. Totals are unchanged. A history of at most `iterations`
/// iterations is returned unchanged. O(history).
History last_iterations(History history, int iterations);

}  // namespace tidepool
