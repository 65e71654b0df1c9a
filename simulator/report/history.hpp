// History of a plan: every run, every copy, and every stay of a buffer in device memory.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "simulator/engine/links.hpp"
#include "simulator/plan.hpp"
#include "simulator/result.hpp"
#include "simulator/run_spec.hpp"
#include "traces/trace.hpp"

namespace tidepool {

/// What a stream waited for before a run.
enum class Cause : std::uint8_t {
  kNothing,
  kCopyIn,     ///< content on its way from the host
  kCopyOut,    ///< a place that a copy to the host had not left
  kOrder,      ///< another stream's op, or the host's launch
  kAllocator,  ///< the device's own allocator (cudaMalloc, cudaFree)
};

struct RunSpan {
  OpId op;  ///< none: no run, but all streams wait for the allocator
  StreamId stream;
  Nanos begin, end;  ///< of the run; what it waited lies before `begin`
  Nanos waited;
  Cause cause = Cause::kNothing;
  bool again = false;  ///< a recomputation
};

struct CopySpan {
  VersionId version;
  Direction direction = Direction::kOut;
  bool storage = false;  ///< to or from the storage beyond the host
  OpId before;           ///< where the program was when it was issued; none: after the last op
  Nanos issued;
  Nanos begin, end;  ///< on the link
};

enum class Arrival : std::uint8_t {
  kBefore,      ///< it existed before the step
  kAllocated,   ///< the program allocated it
  kCopiedIn,    ///< brought back from the host
  kRecomputed,  ///< made room for being computed again
  kScratch,     ///< a second copy of what is there, for one run
};

enum class Leaving : std::uint8_t {
  kFreed,    ///< the program has no further use for it
  kEvicted,  ///< a policy took its place; it was still of use
  kStays,    ///< it is there when the run ends
};

/// A buffer in one place. In-place writes do not end it.
struct Stay {
  BufferId buffer;
  Bytes offset;  ///< kNoAddress where the pool only counts bytes
  Bytes held;    ///< of the place, as the pool rounded it
  Nanos begin, end;
  Arrival arrival = Arrival::kAllocated;
  Leaving leaving = Leaving::kStays;
  OpId arrived_before, left_before;  ///< where the program was; none: after the last op
  BufferId room_for;                 ///< of an evicted one: what got a place next, without a run in between; or none
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

/// Times are when the program comes to where an action stands: its stream is free then, and a place is held from that
/// action to the one that ends it. So in every order of time no two stays overlap, and the largest sum of bytes is
/// Totals::peak.
struct History {
  std::vector<RunSpan> runs;     ///< in issue order
  std::vector<CopySpan> copies;  ///< in issue order
  std::vector<Stay> stays;       ///< in the order of their beginnings
  /// After each time at which it changes; before that, at the same time, what was the largest sum in between if that is
  /// larger. The largest sum of all is Totals::peak.
  std::vector<MemoryPoint> memory;
  std::vector<ReservedSegment> segments;       ///< in the order of their beginnings
  std::vector<Nanos> iterations;               ///< when each but the first began
  std::vector<Nanos> exposed_in, exposed_out;  ///< by version, in the last iteration: what its copies made compute wait
  Nanos begin, end;
  bool counted = false;  ///< the trace knows no durations: times count the runs, and the places given and ended
  Totals totals;         ///< as simulate() reports them
};

/// Follows `plan`, which simulate() has realised (complete, or up to where the run ended). O(actions log n).
/// @param trace  PlannedStep::trace() of the plan
History history_of(const Trace& trace, const RunSpec& spec, const Plan& plan);

}  // namespace tidepool
