// GPU activity as profilers record it, and its conversion to a trace. Shared by the importers of Nsight Systems'
// reports and of Tidepool's own captures. All times of a timeline are ns on one clock.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "traces/builder.hpp"
#include "traces/import/blocks.hpp"
#include "traces/trace.hpp"

namespace tidepool {

/// A stream of one context of one process.
struct GpuStream {
  /// Process id << 24, as Nsight Systems packs it; 0 = not recorded. In Tidepool's own captures, the low bits are the
  /// number of the program in its process, from 0: a process that calls exec becomes the next program.
  std::int64_t process = 0;
  std::int64_t context = 0;
  std::int64_t stream = 0;  ///< -1 = none
  auto operator<=>(const GpuStream&) const = default;
};

/// An address that a kernel or a call used.
struct GpuUse {
  std::int64_t address = 0;  ///< anywhere in a buffer
  std::int64_t size = 0;     ///< bytes from there; 0 = not recorded
  Access access = Access::kTouch;
  Evidence evidence = Evidence::kParameter;
};

/// Indices into a list of uses: [first, last).
struct GpuUses {
  std::size_t first = 0, last = 0;
  bool empty() const { return first == last; }
};

/// A call of a framework's operator, which launches ops.
struct GpuCall {
  GpuUses uses;             ///< from the operator's schema
  std::string_view module;  ///< dotted path; all string_views here refer to texts that must outlive the timeline
  std::string_view line;    ///< of the user's code, as in model.py:88; "" if unknown
  Phase phase = Phase::kUnknown;
  OpKind kind = OpKind::kKernel;
  bool random = false;
};

/// A kernel, copy, memset or collective; a whole CUDA graph where its parts were not recorded; or, where operators are
/// the ops, a call of one.
struct GpuOp {
  OpKind kind = OpKind::kKernel;
  std::string_view name;
  GpuStream stream;
  std::uint16_t device = 0;
  std::optional<std::int64_t> start;  ///< none if the profiler lost the time
  std::int64_t duration = 0;
  std::optional<std::int64_t> launch;     ///< time at which the host launched it; none if not recorded
  GpuUses uses;                           ///< from the parameters of the launch
  std::optional<std::size_t> call;        ///< index into the calls
  std::optional<std::size_t> collective;  ///< of a collective: its index in the caller's data
  bool whole_call = false;                ///< the op stands for all launches of the call, and has all their uses
};

/// An allocation or a free of device memory, or memory that is seen in use (see BlockEvent).
struct GpuMemory {
  BlockEvent event = BlockEvent::kAlloc;
  std::int64_t time = 0;
  std::int64_t address = 0;
  std::int64_t size = 0;
  std::uint16_t device = 0;
  BufferKind kind = BufferKind::kUnknown;
  GpuStream stream;  ///< stream -1 = of no stream
  std::string name;
};

/// An event that was recorded on a stream, or a wait. If a wait names a stream and an event, the stream waits for the
/// event. If it names only one of them, the host waits for that one; if neither, the host waits for the context.
struct GpuSync {
  bool records = false;   ///< an event was recorded; false: a wait
  std::int64_t time = 0;  ///< time at which the host recorded the event, made a stream wait, or ended its wait
  GpuStream stream;       ///< stream -1 = none
  std::int64_t event = -1;
  std::int64_t sync_id = 0;  ///< joins a wait with one record of an event; 0 = not recorded
};

/// The meaning of a range; kByName: its name decides.
enum class RangeMeaning : std::uint8_t { kByName, kIteration, kPhase, kModule };

struct GpuRange {
  std::int64_t start = 0;
  std::optional<std::int64_t> end;  ///< none if it was open when the recording ended
  std::string name;
  RangeMeaning meaning = RangeMeaning::kByName;
};

struct GpuTimeline {
  const char* what = "report";  ///< for messages
  std::vector<GpuOp> ops;
  std::vector<GpuMemory> memory;
  std::vector<GpuSync> syncs;
  std::vector<GpuRange> ranges;
  std::vector<GpuCall> calls;
  std::vector<GpuUse> uses;
  Losses losses;  ///< losses known so far; the conversion to a trace adds others
};

/// Converts a timeline to a trace. Ops are in the order in which the host launched them. Memory events become buffers,
/// and each use gets its buffer by address. Events and waits become orders between streams; ranges become marks, phases
/// and modules. If no range is an iteration, the iterations are found by the repetition of ops and by the updates of
/// weights: see find_steps() and find_updates().
/// @param device  reads this device only, if it is given
/// @return  a builder that is not finished: the caller sets its meta
/// @throws InputError  "no device 3; the report has 1, 4"
TraceBuilder build_trace(const GpuTimeline& timeline, std::optional<std::size_t> device);

/// The index in the timeline of each op of the trace that build_trace() makes of it.
std::vector<std::size_t> ops_in_order(const GpuTimeline& timeline, std::optional<std::size_t> device);

}  // namespace tidepool
