// Raw capture of a dry run: allocations, launches and copies, with the buffers of each launch.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tracer/cupti/live_ranges.hpp"
#include "tracer/cupti/tensor_maps.hpp"
#include "tracer/dry/allocator_record.hpp"
#include "tracer/dry/preset.hpp"
#include "tracer/raw/writer.hpp"

namespace tidepool::dry {

struct CollectiveCall;
struct Event;
struct Kernel;
struct Launch;
struct LibraryCall;
struct Stream;

/// The calling thread's number.
std::uint32_t thread_id();

/// The program's handle of a stream.
std::uint64_t handle_of(const Stream& stream);

/// A piece of device work. It is recorded each time it runs: once, or at each launch of the graph that holds it.
struct Work {
  std::string_view name;  ///< of the kernel or library function; must outlive the work
  const Kernel* kernel = nullptr;
  unsigned grid[3] = {1, 1, 1}, block[3] = {1, 1, 1};
  std::size_t shared_bytes = 0;
  std::vector<raw::BufferUse> uses;
  std::uint32_t unknown_pointers = 0;
  bool scanned = true;      ///< false: the kernel's parameters are not known
  std::int64_t issued = 0;  ///< when the program asked for it, ns
  std::uint64_t estimate_ns = 0;

  enum class Kind : unsigned char { kKernel, kCopy, kFill } kind = Kind::kKernel;
  std::uint64_t to = 0, from = 0, bytes = 0;  ///< copies and fills
  raw::CopyKind copy = raw::CopyKind::kUnknown;
  unsigned char value = 0;

  std::optional<raw::Collective> collective = {};  ///< ran() adds name and correlation
  std::string_view collective_name = {};
};

inline constexpr std::uint32_t kContext = 1;  // of every record: a process has one

/// Keeps the buffers that are alive, and writes a raw capture file if $TIDEPOOL_RAW names a folder.
///
/// A buffer is an allocation of the program on the device until a framework reports its tensors. From then on, tensors
/// are the buffers, and the allocations around them are not. Times are on CLOCK_MONOTONIC_RAW. Times of the host are
/// measured; times of the device are estimates (see estimate()), as the file states. Any thread may call the functions.
/// If the file cannot be made or written, one line on stderr says so, and nothing more is recorded.
class Recorder {
 public:
  /// @param preset  must outlive the recorder
  explicit Recorder(const DevicePreset& preset) : preset_{preset} {}

  /// Whether the process may use a device. It has memory on one device only: that of the first call.
  /// @return  false for any other device
  bool uses_device(std::uint32_t device);
  int device();  ///< 0 before the first call of uses_device()
  void allocated(std::uint64_t address, std::uint64_t bytes);
  void freed(std::uint64_t address, std::uint64_t bytes);
  void mapped(std::uint64_t address, std::uint64_t bytes);
  void unmapped(std::uint64_t address, std::uint64_t bytes);
  void tensor_allocated(std::uint64_t address, std::uint64_t bytes, const Stream& stream);
  void tensor_freed(std::uint64_t address);
  /// The allocator's own count of allocated and reserved bytes, and a request that it could not serve.
  void allocator_said(std::uint64_t allocated, std::uint64_t reserved);
  void allocator_failed(const AllocatorRecord::Failure& failure);
  void asked_for_memory() { asked_memory_ = true; }  ///< the program asked how much memory there is
  /// A fact for the trace's metadata. A later value of a key replaces an earlier one.
  void state(std::string_view key, std::string_view value);

  /// A launch that passes this descriptor by value uses the memory at `address`.
  void tensor_map_encoded(const std::byte* descriptor, std::uint64_t address);
  /// Work, with the buffers that it uses and its estimated time. Nothing is recorded before ran() is called.
  Work work_of(const Launch& launch, const void* const* arguments);
  Work work_of(const LibraryCall& call);
  Work work_of(const CollectiveCall& call);
  Work copy(std::uint64_t to, std::uint64_t from, std::uint64_t bytes, raw::CopyKind kind);
  Work fill(std::uint64_t to, unsigned char value, std::uint64_t bytes);

  /// Records that this process is now a rank of a communicator.
  void joined(std::uint64_t communicator, std::uint32_t rank, std::uint32_t ranks);

  /// Advances the clock of `stream` by the estimated time of `work`, and records the work.
  void ran(Stream& stream, const Work& work);
  /// The event happens when the stream has ended all its work so far, but not before now.
  void event_recorded(Stream& stream, Event& event);
  /// Later work of the stream does not begin before the event.
  void event_awaited(Stream& stream, const Event& event);

  /// Waits until all records are in the file, at most 5 s.
  void flush();
  /// Ends the file.
  void close();
  /// As close(), for a program that ends at once (_exit). Does nothing in a process that borrows this one's memory
  /// (vfork), or while any thread is within one of these functions.
  void close_at_exit();
  /// Locks the recorder: calls of other threads wait until the lock is released.
  std::unique_lock<std::mutex> hold() { return std::unique_lock{mutex_}; }
  /// Called in the child of a fork, with hold(). The file is the parent's; the next record begins a new one.
  void forget();

  static std::int64_t now();  ///< ns on CLOCK_MONOTONIC_RAW

 private:
  /// The file, made at the first record; null if nothing is to be recorded.
  raw::Writer* writer();
  void open(const std::string& folder);
  void introduce_device();
  void introduce(const Stream& stream);
  raw::Text text(std::string_view value);
  /// Whether the job's options say that an iteration begins with this kernel. Never for a kernel that a graph replays.
  bool begins_iteration(const Stream& stream, const Work& work) const;
  /// Bytes of the used buffers, each counted once.
  std::uint64_t bytes_used(const std::vector<raw::BufferUse>& uses) const;
  std::uint64_t estimate(const std::vector<raw::BufferUse>& uses, double flops, double peak_flops) const;
  void memory_record(raw::MemoryOperation operation, std::uint64_t address, std::uint64_t bytes);
  void tensor_record(raw::Action action, std::uint64_t address, std::uint64_t bytes, std::uint64_t stream);
  /// The segments or mapped pages that hold a tensor.
  template <class Do>
  void for_each_segment(std::uint64_t address, std::uint64_t bytes, Do what);
  void append_info(std::string_view key, std::string_view value);
  void append_allocator_record();
  void write_end();

  const DevicePreset& preset_;
  std::mutex mutex_;
  cupti::LiveRanges buffers_;
  cupti::TensorMaps tensor_maps_;
  AllocatorRecord allocator_;
  std::vector<std::uint64_t> introduced_;  ///< streams that are described in the file
  raw::Writer writer_;
  std::string iteration_kernel_;  ///< part of the name of a kernel that begins an iteration; empty: none does
  std::atomic<bool> asked_memory_ = false;
  bool tried_ = false;
  std::optional<std::uint32_t> device_;  ///< the only device that the process has memory on
  pid_t process_ = 0;                    ///< the process that writes the file
  std::atomic<std::uint32_t> last_correlation_{0};
};

}  // namespace tidepool::dry
