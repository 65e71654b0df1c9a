// Trace of a training step: buffers, the ops that use them, and the order in which it all happened.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "traces/base/quantity.hpp"
#include "traces/ids.hpp"

namespace tidepool {

enum class BufferKind : std::uint8_t {
  kUnknown,
  kParameter,
  kGradient,
  kOptimizerState,
  kActivation,
  kWorkspace,
  kInput,
};

/// One storage: a contiguous piece of device memory. Views and reshapes are the same buffer.
struct Buffer {
  Bytes size = {};
  std::int64_t address = -1;  ///< as recorded; -1 = not recorded
  StringId name = {};
  StreamId stream = {};  ///< the stream it was allocated for
  std::uint16_t device = 0;
  BufferKind kind = BufferKind::kUnknown;
  bool born_before = false;  ///< existed when the trace began: it has no alloc step
  bool outlives = false;     ///< still exists when the trace ends: it has no free step
  StringId line = {};        ///< of the user's code that allocated it, as in model.py:88; none = not recorded
  bool operator==(const Buffer&) const = default;
};

enum class OpKind : std::uint8_t {
  kKernel,
  kCopy,
  kMemset,
  kCollective,
  kHostWait,
  kSource,  ///< brings bytes from outside (data loader, constant): it cannot be run again
};

enum class Phase : std::uint8_t { kUnknown, kForward, kBackward, kOptimizer };

/// One kernel, copy, memset, collective, host wait or source.
struct Op {
  StringId name = {};
  StringId module = {};  ///< dotted module path, "" if unknown
  StreamId stream = {};
  OpKind kind = OpKind::kKernel;
  Phase phase = Phase::kUnknown;
  bool random = false;       ///< draws random numbers: running it again needs the generator state of its first run
  Nanos start = Nanos{-1};   ///< since the start of the trace, as recorded; -1 = not recorded
  Nanos launch = Nanos{-1};  ///< when the host issued it; -1 = not recorded
  Nanos duration = {};
  std::uint32_t first_use = 0;  ///< uses [first_use, last_use)
  std::uint32_t last_use = 0;
  StringId line = {};  ///< of the user's code that called it, as in model.py:88; none = not recorded
  bool operator==(const Op&) const = default;
};

enum class VersionKind : std::uint8_t {
  kInitial,  ///< content of the buffer when the trace began or when it was allocated; no op produced it
  kWrite,    ///< an op overwrote the whole buffer without reading its earlier content
  kUpdate,   ///< an op read the earlier content and changed it in place
  kView,     ///< another name for the bytes of `parent`; occupies nothing
};

/// The content of a buffer between two writes, or a view of such content. Policies evict and regenerate versions.
struct Version {
  BufferId buffer = {};
  VersionKind kind = VersionKind::kInitial;
  OpId producer = {};  ///< none for kInitial
  VersionId parent =
      {};  ///< kWrite, kUpdate: the version it replaces (none if it is the first); kView: the version viewed
  VersionId root = {};  ///< kView: the version at the end of the parent chain; otherwise itself
  bool operator==(const Version&) const = default;
};

/// The evidence that an op uses a buffer, best first. A report never hides a guess.
enum class Evidence : std::uint8_t {
  kSchema,        ///< the framework's op schema
  kCopy,          ///< the direction of a copy, or a memset
  kConst,         ///< const-qualified kernel parameter
  kInstrumented,  ///< binary instrumentation
  kParameter,     ///< a pointer found among the launch parameters
  kInferred,      ///< guessed from order and size
};

enum class Access : std::uint8_t {
  kRead,
  kWrite,      ///< overwrites without reading
  kReadWrite,  ///< reads and changes in place
  kTouch,      ///< uses it in an unknown way; treated like kReadWrite
  kView,       ///< makes another name for the same bytes
};

/// One op using one buffer. `in` is the version read (none for kWrite), `out` the version made (none for kRead).
struct Use {
  VersionId in = {};
  VersionId out = {};
  Access access = Access::kRead;
  Evidence evidence = Evidence::kInferred;
  bool operator==(const Use&) const = default;
};

enum class EventKind : std::uint8_t {
  kAlloc,   ///< a buffer comes into being
  kFree,    ///< a buffer ends
  kRun,     ///< an op runs
  kForget,  ///< the program drops its last reference to a version that was replaced in place. The replacing version
            ///< still has the memory; only a model that copies on write can give memory back here.
};

/// The program: its events in the order in which the host issued them. `id` indexes buffers, ops or versions by kind.
struct Event {
  EventKind kind = EventKind::kRun;
  std::uint32_t id = 0;
  bool operator==(const Event&) const = default;
};

enum class MarkKind : std::uint8_t { kIteration, kPhase, kRangeBegin, kRangeEnd };

/// A mark comes before the event with index `event` (which may equal the number of events).
struct Mark {
  std::uint32_t event = 0;
  MarkKind kind = MarkKind::kIteration;
  StringId name = {};
  bool operator==(const Mark&) const = default;
};

/// `after` must not start before `before` has ended, although they are on different streams (recorded event waits).
struct Order {
  OpId before = {};
  OpId after = {};
  bool operator==(const Order&) const = default;
};

/// Records that are known to be lost or guessed. All zero for a complete trace.
struct Losses {
  std::int64_t dropped_records = 0;
  std::int64_t unmatched_frees = 0;    ///< frees of memory whose allocation was not seen
  std::int64_t unknown_pointers = 0;   ///< kernel parameters that pointed to no known buffer
  std::int64_t clock_residual_ns = 0;  ///< largest residual of the clock fit
  bool operator==(const Losses&) const = default;
};

/// The plain arrays of a trace, as read from a file or made by a TraceBuilder. `versions[i].root`, the use ranges of
/// ops and all ids are checked when a Trace is made from it.
struct TraceData {
  std::vector<std::string> strings;  ///< strings[0] is ""
  std::vector<std::string> streams;  ///< names of the streams; at least one
  std::vector<Buffer> buffers;
  std::vector<Op> ops;
  std::vector<Use> uses;
  std::vector<Version> versions;
  std::vector<Event> events;
  std::vector<Mark> marks;
  std::vector<Order> orders;
  std::vector<VersionId> outputs;  ///< must be available when the step ends, in the order in which they are asked for
  Losses losses;
  std::map<std::string, std::string> meta;  ///< "source", "capture", "device", "time" (measured | estimated), ...
  bool operator==(const TraceData&) const = default;
};

/// An immutable, checked training step with the indices that every policy needs. Shared by all threads of a sweep.
class Trace {
 public:
  /// @throws InputError  naming the record, e.g. "op 388 reads buffer 41, which was freed before it"
  explicit Trace(TraceData data);

  const TraceData& data() const { return data_; }
  std::span<const Buffer> buffers() const { return data_.buffers; }
  std::span<const Op> ops() const { return data_.ops; }
  std::span<const Version> versions() const { return data_.versions; }
  std::span<const Event> events() const { return data_.events; }
  std::span<const VersionId> outputs() const { return data_.outputs; }

  const Buffer& buffer(BufferId id) const { return data_.buffers[id.index()]; }
  const Op& op(OpId id) const { return data_.ops[id.index()]; }
  const Version& version(VersionId id) const { return data_.versions[id.index()]; }
  std::string_view text(StringId id) const { return id.valid() ? data_.strings[id.index()] : std::string_view{}; }
  std::span<const Use> uses(OpId id) const {
    return std::span{data_.uses}.subspan(op(id).first_use, op(id).last_use - op(id).first_use);
  }
  VersionId root(VersionId id) const { return version(id).root; }
  /// Bytes that a version occupies: its buffer's size, or 0 for a view.
  Bytes size(VersionId id) const {
    return version(id).kind == VersionKind::kView ? Bytes{} : buffer(version(id).buffer).size;
  }

  /// The first content of a buffer: its initial version, or else the version that the first op on it makes.
  VersionId first_version(BufferId id) const { return first_version_[id.index()]; }
  /// Ops that read a version or a view of it, in program order, each once.
  std::span<const OpId> readers(VersionId root) const { return slice(readers_, reader_start_, root.index()); }
  /// Ops that made a view of a version (directly or of a view), in program order, each once.
  std::span<const OpId> viewers(VersionId root) const { return slice(viewers_, viewer_start_, root.index()); }
  /// Root versions that an op makes, in the order of its uses, each once.
  std::span<const VersionId> made(OpId id) const {
    return std::span{made_}.subspan(made_start_[id.index()], made_start_[id.index() + 1] - made_start_[id.index()]);
  }
  /// Position in events() of the run of an op; ops run exactly once in the program.
  std::uint32_t position(OpId id) const { return position_[id.index()]; }
  /// The op for which an alloc event makes room: the next run event if only alloc events stand between; else none.
  OpId allocated_for(std::size_t step) const { return allocated_for_[step]; }

  /// Largest sum of live bytes: each buffer counts once, views and in-place versions do not count.
  Bytes ideal_peak() const { return ideal_peak_; }
  /// xxh3-64 of the content, 16 hexadecimal digits: the same for a trace however it was stored.
  const std::string& hash() const { return hash_; }

 private:
  std::span<const OpId> slice(const std::vector<OpId>& values, const std::vector<std::uint32_t>& start,
                              std::size_t index) const {
    return std::span{values}.subspan(start[index], start[index + 1] - start[index]);
  }
  void index();

  TraceData data_;
  std::vector<VersionId> first_version_;
  std::vector<OpId> readers_, viewers_;
  std::vector<std::uint32_t> reader_start_, viewer_start_;
  std::vector<VersionId> made_;
  std::vector<std::uint32_t> made_start_;
  std::vector<std::uint32_t> position_;
  std::vector<OpId> allocated_for_;
  Bytes ideal_peak_;
  std::string hash_;
};

}  // namespace tidepool
