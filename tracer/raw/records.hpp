// The records of a raw capture file, with the layout of their bytes in the file: see FORMAT.md. All fields have a fixed
// width, so that a recorder inside a job needs only this header, the frame and the writer.
#pragma once

#include <cstdint>
#include <type_traits>

#include "tracer/raw/frame.hpp"

namespace tidepool::raw {

/// Text number `id`; the tail has its UTF-8 bytes, padded with zeros.
struct String {
  static constexpr Kind kKind = Kind::kString;
  Text id = {};
  std::uint32_t length = 0;
};

/// A property of the run, by a key such as "gpu" or "setting.NAME". FORMAT.md lists the keys.
struct Info {
  static constexpr Kind kKind = Kind::kInfo;
  Text key = {};
  Text value = {};
};

/// The three clocks read at one moment.
struct ClockReading {
  static constexpr Kind kKind = Kind::kClockReading;
  std::int64_t time = 0;  ///< on the file's clock
  std::int64_t realtime = 0;
  std::int64_t monotonic_raw = 0;
};

struct DeviceInfo {
  static constexpr Kind kKind = Kind::kDevice;
  std::uint64_t memory = 0;     ///< bytes
  std::uint64_t bandwidth = 0;  ///< bytes per second; 0 = not known
  Text name = {};
  std::uint32_t device = 0;
  std::uint32_t multiprocessors = 0;
  std::uint32_t compute = 0;  ///< 90 for 9.0
};

struct Context {
  static constexpr Kind kKind = Kind::kContext;
  std::uint32_t context = 0;
  std::uint32_t device = 0;
};

struct Stream {
  static constexpr Kind kKind = Kind::kStream;
  std::uint64_t handle = 0;  ///< the CUstream, which frameworks use as its id; 0 = not known, or the default stream
  std::uint32_t context = 0;
  std::uint32_t stream = 0;
  std::int32_t priority = 0;
  std::uint32_t flags = 0;
};

enum class MemoryOperation : std::uint8_t {
  kUnknown,
  kAlloc,
  kFree,
  kExisting,  ///< the memory exists, but its allocation was not seen
};

/// The numbers are CUPTI's.
enum class MemoryKind : std::uint8_t {
  kUnknown,
  kPageable,
  kPinned,
  kDevice,
  kArray,
  kManaged,
  kDeviceStatic,
  kManagedStatic,
};

enum class PoolKind : std::uint8_t { kNone, kLocal, kImported };

/// An allocation or a free of memory by the driver.
struct Memory {
  static constexpr Kind kKind = Kind::kMemory;
  std::int64_t time = 0;
  std::uint64_t address = 0;
  std::uint64_t size = 0;
  std::uint64_t pool = 0;  ///< address of the memory pool; 0 = none
  std::uint32_t device = kNoId;
  std::uint32_t context = kNoId;
  std::uint32_t stream = kNoId;  ///< of a stream-ordered operation
  std::uint32_t correlation = 0;
  std::uint32_t thread = 0;
  Text source = {};  ///< file name of the library that called the driver
  Text name = {};
  MemoryOperation operation = {};
  MemoryKind memory = {};
  std::uint8_t async = 0;  ///< 1 = stream-ordered
  PoolKind pool_kind = {};
};

enum class PoolOperation : std::uint8_t { kUnknown, kCreate, kDestroy, kTrim };

/// A change of a pool for stream-ordered allocations of the driver. Sizes in bytes.
struct MemoryPool {
  static constexpr Kind kKind = Kind::kPool;
  std::int64_t time = 0;
  std::uint64_t address = 0;
  std::uint64_t size = 0;
  std::uint64_t utilized = 0;
  std::uint64_t release_threshold = 0;
  std::uint64_t least_kept = 0;
  std::uint32_t device = kNoId;
  std::uint32_t correlation = 0;
  PoolOperation operation = {};
  PoolKind pool_kind = {};
  std::uint8_t reserved[6] = {};
};

/// The actions of PyTorch's TraceEntry, and two for state from before the recording.
enum class Action : std::uint8_t {
  kUnknown,
  kAlloc,
  kFreeRequested,
  kFreeCompleted,
  kSegmentAlloc,
  kSegmentFree,
  kSegmentMap,
  kSegmentUnmap,
  kOom,
  kSnapshot,
  kExisting,         ///< a tensor from before, or a fact about a live one
  kSegmentExisting,  ///< a segment that was there when the recording began
};

/// The role of a tensor, if the framework gives it.
enum class Category : std::uint8_t {
  kUnknown,
  kParameter,
  kGradient,
  kOptimizerState,
  kActivation,
  kWorkspace,
  kInput,
};

/// An allocation or a free by a framework's own allocator: of a tensor, or of a segment that contains tensors.
struct FrameworkMemory {
  static constexpr Kind kKind = Kind::kFrameworkMemory;
  std::int64_t time = 0;
  std::uint64_t address = 0;    ///< kOom: bytes that were free on the device
  std::uint64_t size = 0;       ///< tensors: as requested, or that of the block
  std::uint64_t stream = 0;     ///< the framework's handle of the stream
  std::int64_t pool_owner = 0;  ///< with pool_number: the pool of PyTorch's allocator; 0 and 0: the usual one
  std::int64_t pool_number = 0;
  std::uint32_t device = 0;
  std::uint32_t thread = 0;
  Text name = {};
  Action action = {};
  Category category = {};
  std::uint8_t reserved[2] = {};
};

enum class VmmOperation : std::uint8_t {
  kUnknown,
  kReserve,
  kCreate,
  kMap,
  kUnmap,
  kRelease,
  kAddressFree,
};

/// A call of virtual memory management (cuMemAddressReserve, cuMemCreate, cuMemMap, ...).
struct Vmm {
  static constexpr Kind kKind = Kind::kVmm;
  std::int64_t time = 0;
  std::uint64_t address = 0;
  std::uint64_t size = 0;
  std::uint64_t handle = 0;  ///< of the physical memory
  std::uint64_t offset = 0;  ///< kMap: into the physical memory
  std::uint32_t device = kNoId;
  std::uint32_t correlation = 0;
  std::uint32_t thread = 0;
  VmmOperation operation = {};
  std::uint8_t reserved[3] = {};
};

/// A kernel that ran. Start and end are 0 if the profiler lost its times.
struct Kernel {
  static constexpr Kind kKind = Kind::kKernel;
  std::int64_t start = 0;
  std::int64_t end = 0;
  std::uint64_t graph_node = 0;  ///< 0 = not launched by a graph
  Text name = {};                ///< mangled
  std::uint32_t device = 0;
  std::uint32_t context = 0;
  std::uint32_t stream = 0;
  std::uint32_t correlation = 0;
  std::uint32_t graph = 0;
  std::uint32_t grid[3] = {};
  std::uint32_t block[3] = {};
  std::uint32_t static_shared = 0;   ///< bytes
  std::uint32_t dynamic_shared = 0;  ///< bytes
  std::uint32_t local = 0;           ///< bytes per thread
  std::uint32_t registers = 0;       ///< per thread
};

/// The numbers are CUPTI's.
enum class CopyKind : std::uint8_t { kUnknown, kHtoD, kDtoH, kHtoA, kAtoH, kAtoA, kAtoD, kDtoA, kDtoD, kHtoH, kPtoP };

/// A copy that ran. The addresses are 0 if they are not known; then the Launch of the same correlation has them.
struct Copy {
  static constexpr Kind kKind = Kind::kCopy;
  std::int64_t start = 0;
  std::int64_t end = 0;
  std::uint64_t size = 0;
  std::uint64_t graph_node = 0;
  std::uint64_t from = 0;
  std::uint64_t to = 0;
  std::uint32_t device = 0;
  std::uint32_t context = 0;
  std::uint32_t stream = 0;
  std::uint32_t correlation = 0;
  std::uint32_t graph = 0;
  std::uint32_t from_device = kNoId;
  std::uint32_t to_device = kNoId;
  CopyKind copy = {};
  MemoryKind from_memory = {};
  MemoryKind to_memory = {};
  std::uint8_t reserved = 0;
};

struct Memset {
  static constexpr Kind kKind = Kind::kMemset;
  std::int64_t start = 0;
  std::int64_t end = 0;
  std::uint64_t size = 0;
  std::uint64_t graph_node = 0;
  std::uint64_t address = 0;  ///< 0 = not known
  std::uint32_t device = 0;
  std::uint32_t context = 0;
  std::uint32_t stream = 0;
  std::uint32_t correlation = 0;
  std::uint32_t graph = 0;
  std::uint32_t value = 0;
  MemoryKind memory = {};
  std::uint8_t reserved[7] = {};
};

enum class Access : std::uint8_t { kUnknown, kRead, kWrite, kReadWrite, kTouch };

/// Source of the recorder's knowledge of a use; the same as Evidence in traces/trace.hpp.
enum class Evidence : std::uint8_t { kUnknown, kSchema, kCopy, kConst, kInstrumented, kParameter, kInferred };

/// A buffer that a launch or an op uses, by an address inside it.
struct BufferUse {
  std::uint64_t address = 0;
  std::uint64_t size = 0;       ///< used bytes from `address` on; 0 = not known
  std::uint32_t offset = 0;     ///< of the pointer within the parameter, in bytes
  std::uint16_t parameter = 0;  ///< index of the parameter, from 0
  Access access = {};
  Evidence evidence = {};
};

inline constexpr std::uint32_t kUsesIncomplete = 1;  ///< uses are missing, since there are too many
inline constexpr std::uint32_t kNotScanned = 2;      ///< the parameters were not scanned

/// A launch by the host, recorded at the driver's call, with the buffers among its parameters: the tail has them, and
/// `uses` is their number. A record with a graph node and no correlation has the node's uses at each launch of the
/// graph.
struct Launch {
  static constexpr Kind kKind = Kind::kLaunch;
  std::int64_t start = 0;  ///< of the host's call
  std::int64_t end = 0;
  std::uint64_t function = 0;  ///< CUfunction
  std::uint64_t graph_node = 0;
  std::uint32_t correlation = 0;
  std::uint32_t context = kNoId;
  std::uint32_t stream = kNoId;
  std::uint32_t thread = 0;
  std::uint32_t graph = 0;
  std::uint32_t unknown_pointers = 0;  ///< words that may be device addresses, but are in no known buffer
  std::uint32_t flags = 0;
  std::uint32_t uses = 0;
  /// Ids of calls inside the call whose id is `correlation`: of a nested runtime call, and of the driver's call. Some
  /// versions of CUPTI give these ids to the launched work. 0 = there is none.
  std::uint32_t inner_correlation = 0;
  std::uint32_t driver_correlation = 0;
};

enum class Layer : std::uint8_t { kUnknown, kRuntime, kDriver, kInternal };

/// A call of the CUDA runtime or driver by the host.
struct Api {
  static constexpr Kind kKind = Kind::kApi;
  std::int64_t start = 0;
  std::int64_t end = 0;
  Text name = {};
  std::uint32_t correlation = 0;
  std::uint32_t thread = 0;
  std::int32_t result = 0;
  Layer layer = {};
  std::uint8_t reserved[7] = {};
};

/// The numbers are CUPTI's.
enum class SyncKind : std::uint8_t { kUnknown, kEvent, kStreamWaitsEvent, kStream, kContext };

struct Sync {
  static constexpr Kind kKind = Kind::kSync;
  std::int64_t start = 0;
  std::int64_t end = 0;
  std::uint64_t sync_id = 0;  ///< of the awaited EventRecord, since events are reused; 0 = not known
  std::uint32_t context = kNoId;
  std::uint32_t stream = kNoId;
  std::uint32_t event = kNoId;
  std::uint32_t correlation = 0;
  std::int32_t result = 0;
  SyncKind sync = {};
  std::uint8_t reserved[3] = {};
};

/// The record of an event on a stream.
struct EventRecord {
  static constexpr Kind kKind = Kind::kEventRecord;
  std::int64_t time = 0;         ///< of the host's call; 0 = the time of the Api record of the same correlation
  std::int64_t device_time = 0;  ///< at which the device reached the event; 0 = not known
  std::uint64_t sync_id = 0;
  std::uint32_t context = kNoId;
  std::uint32_t stream = kNoId;
  std::uint32_t event = kNoId;
  std::uint32_t correlation = 0;
};

enum class RangeAction : std::uint8_t {
  kUnknown,
  kPush,  ///< begins; ends with the next kPop of the same thread
  kPop,
  kBegin,  ///< begins; ends with the kEnd of the same id
  kEnd,
  kMark,  ///< a point in time
};

enum class Meaning : std::uint8_t { kRange, kIteration, kPhase, kModule, kOp };

struct Range {
  static constexpr Kind kKind = Kind::kRange;
  std::int64_t time = 0;
  std::uint64_t id = 0;
  Text name = {};
  Text domain = {};
  std::uint32_t thread = 0;
  RangeAction action = {};
  Meaning meaning = {};
  std::uint8_t reserved[2] = {};
};

enum class Phase : std::uint8_t { kUnknown, kForward, kBackward, kOptimizer };

/// The work of an operator: it computes (kKernel), copies to the host (kCopy), brings bytes from the host (kSource), or
/// lets the host wait for a value (kHostWait).
enum class Work : std::uint8_t { kKernel, kCopy, kSource, kHostWait };

/// A framework's operator. The launches of its thread from start to end belong to it, or to an operator that it calls.
/// The tail has its uses of storages, and `uses` is their number.
struct FrameworkOp {
  static constexpr Kind kKind = Kind::kFrameworkOp;
  std::int64_t start = 0;
  std::int64_t end = 0;
  std::uint64_t id = 0;        ///< its external correlation id; 0 = none
  std::uint64_t sequence = 0;  ///< autograd's sequence number; 0 = none
  Text name = {};
  Text schema = {};
  Text module = {};
  std::uint32_t thread = 0;
  std::uint32_t uses = 0;
  Phase phase = {};
  std::uint8_t random = 0;  ///< 1 = draws random numbers
  Work work = {};
  std::uint8_t reserved = 0;
  std::int64_t estimate = 0;  ///< ns on the device that the file's info "times" names; unused without that info
  Text line = {};             ///< of the user's code, as in model.py:88
  std::uint32_t reserved2 = 0;
};

/// The external correlation id of a launch, which the framework set around it.
struct External {
  static constexpr Kind kKind = Kind::kExternal;
  std::uint64_t id = 0;
  std::uint32_t correlation = 0;
  std::uint32_t external_kind = 0;  ///< CUPTI's number
};

/// An interval that the profiler itself took.
struct Overhead {
  static constexpr Kind kKind = Kind::kOverhead;
  std::int64_t start = 0;
  std::int64_t end = 0;
  Text name = {};
  std::uint32_t thread = 0;
};

enum class LossKind : std::uint8_t {
  kUnknown,
  kDroppedRecords,  ///< by the profiler; or ops of threads that a hook does not record
  kZeroTimestamps,
  kUnknownPointers,
  kUnmatchedFrees,
  kDiskFull,     ///< records lost because the disk was full
  kBuffersFull,  ///< records lost because the disk was too slow
  kUnscannedLaunches,
};

struct Loss {
  static constexpr Kind kKind = Kind::kLoss;
  std::int64_t time = 0;
  std::uint64_t count = 0;
  LossKind loss = {};
  std::uint8_t reserved[7] = {};
};

/// A group of ranks that this process belongs to.
struct Communicator {
  static constexpr Kind kKind = Kind::kCommunicator;
  std::uint64_t id = 0;     ///< the same in all its processes
  std::uint32_t rank = 0;   ///< of this process in the group
  std::uint32_t ranks = 0;  ///< of the group
};

/// A kernel that is this rank's part of a collective, or of a message between two ranks.
struct Collective {
  static constexpr Kind kKind = Kind::kCollective;
  std::uint64_t communicator = 0;  ///< its id
  /// Number from 0 among this process's collectives in the communicator, its messages to the peer, or the peer's to it.
  std::uint64_t sequence = 0;
  std::uint64_t size = 0;  ///< bytes of this rank's input, or of the message
  Text name = {};          ///< all_reduce, send, ...
  std::uint32_t correlation = 0;
  std::uint32_t peer = kNoId;  ///< of a message: the other rank in the communicator
  std::uint32_t reserved = 0;
};

/// Whether a record can be copied byte by byte: it has no padding and is a multiple of eight bytes.
template <class Record>
inline constexpr bool kPlainRecord =
    std::is_trivially_copyable_v<Record>&& std::has_unique_object_representations_v<Record> && sizeof(Record) % 8 == 0;
static_assert(kPlainRecord<String> && kPlainRecord<Info> && kPlainRecord<ClockReading> && kPlainRecord<DeviceInfo>);
static_assert(kPlainRecord<Context> && kPlainRecord<Stream> && kPlainRecord<Memory> && kPlainRecord<MemoryPool>);
static_assert(kPlainRecord<FrameworkMemory> && kPlainRecord<Vmm> && kPlainRecord<Kernel> && kPlainRecord<Copy>);
static_assert(kPlainRecord<Memset> && kPlainRecord<Launch> && kPlainRecord<Api> && kPlainRecord<Sync>);
static_assert(kPlainRecord<EventRecord> && kPlainRecord<Range> && kPlainRecord<FrameworkOp> && kPlainRecord<BufferUse>);
static_assert(kPlainRecord<External> && kPlainRecord<Overhead> && kPlainRecord<Loss>);
static_assert(kPlainRecord<Communicator> && kPlainRecord<Collective>);

}  // namespace tidepool::raw
