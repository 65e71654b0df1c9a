// The raw capture of a dry run: what was allocated, launched and copied, with the buffers that each launch was given.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tracer/cupti/live_ranges.hpp"
#include "tracer/dry/preset.hpp"
#include "tracer/raw/writer.hpp"

namespace tidepool::dry {

struct CollectiveCall;
struct Event;
struct Kernel;
struct Launch;
struct LibraryCall;
struct Stream;

/// A piece of device work, as it is recorded each time it runs: once, or at each launch of the graph that holds it.
struct Work {
  std::string_view name;  ///< of the kernel or library function; must outlive the work
  const Kernel* kernel = nullptr;
  unsigned grid[3] = {1, 1, 1}, block[3] = {1, 1, 1};
  std::size_t shared_bytes = 0;
  std::vector<raw::BufferUse> uses;
  std::uint32_t unknown_pointers = 0;
  bool scanned = true;      ///< false: nothing is known of the parameters
  std::int64_t issued = 0;  ///< when the program asked for it, ns
  std::uint64_t estimate_ns = 0;

  enum class Kind : unsigned char { kKernel, kCopy, kFill } kind = Kind::kKernel;
  std::uint64_t to = 0, from = 0, bytes = 0;  ///< copies and fills
  raw::CopyKind copy = raw::CopyKind::kUnknown;
  unsigned char value = 0;

  std::optional<raw::Collective> collective = {};  ///< without its name and correlation
  std::string_view collective_name = {};
};

/// Knows which device memory is a buffer now, and writes a raw capture file where $TIDEPOOL_RAW names a folder.
///
/// A buffer is what the program itself allocates on the device, until a framework says that it put tensors there: from
/// then on tensors are the buffers, and what lies around them is not. Times are on CLOCK_MONOTONIC_RAW: those of the
/// host as measured here, those of the device estimates (see estimate()), which the file says.
class Recorder {
 public:
  explicit Recorder(const DevicePreset& preset) : preset_{preset} {}

  /// The device that the process has memory on: the one that it is first asked for.
  /// @return  false for another one later
  bool uses_device(std::uint32_t device);
  int device();  ///< 0 where there is none yet
  void allocated(std::uint64_t address, std::uint64_t bytes);
  void freed(std::uint64_t address, std::uint64_t bytes);
  void mapped(std::uint64_t address, std::uint64_t bytes);
  void unmapped(std::uint64_t address, std::uint64_t bytes);
  void tensor_allocated(std::uint64_t address, std::uint64_t bytes);
  void tensor_freed(std::uint64_t address);

  /// What a launch or a library call uses and how long it would take; to be recorded with ran().
  Work work_of(const Launch& launch, const void* const* arguments);
  Work work_of(const LibraryCall& call);
  Work work_of(const CollectiveCall& call);
  Work copy(std::uint64_t to, std::uint64_t from, std::uint64_t bytes, raw::CopyKind kind);
  Work fill(std::uint64_t to, unsigned char value, std::uint64_t bytes);

  /// This process is a rank of a communicator now.
  void joined(std::uint64_t communicator, std::uint32_t rank, std::uint32_t ranks);

  /// `work` runs on `stream` now: moves the stream's clock on and records it.
  void ran(Stream& stream, const Work& work);
  /// The event happens when the stream has done what it has, not before now.
  void event_recorded(Stream& stream, Event& event);
  void event_awaited(Stream& stream, const Event& event);

  /// Waits until all that was recorded is in the file.
  void flush();
  /// Ends the file.
  void close();
  /// The same for a program that ends at once (_exit), maybe within one of these functions: does nothing in a process
  /// that borrows this one's memory (vfork), or while another thread is recording.
  void close_at_exit();
  /// Other threads' calls wait as long as it is kept.
  std::unique_lock<std::mutex> hold() { return std::unique_lock{mutex_}; }
  /// In the child of a fork, with hold(): the file is the parent's; a new one begins with the next record.
  void forget();

  static std::int64_t now();  ///< ns on CLOCK_MONOTONIC_RAW

 private:
  /// The file, made at the first record; null: nothing is to be recorded.
  raw::Writer* writer();
  void open(const std::string& folder);
  void introduce_device();
  void introduce(const Stream& stream);
  raw::Text text(std::string_view value);
  /// Whether the job's options say that an iteration begins with this kernel; where it is replayed from a graph, none does.
  bool begins_iteration(const Stream& stream, const Work& work) const;
  /// Bytes of the buffers used, each once.
  std::uint64_t bytes_used(const std::vector<raw::BufferUse>& uses) const;
  std::uint64_t estimate(const std::vector<raw::BufferUse>& uses, double flops, double peak_flops) const;
  void memory_record(raw::MemoryOperation operation, std::uint64_t address, std::uint64_t bytes);
  void tensor_record(raw::Action action, std::uint64_t address, std::uint64_t bytes);

  const DevicePreset& preset_;
  std::mutex mutex_;
  cupti::LiveRanges buffers_;
  std::vector<std::uint64_t> introduced_;  ///< streams that the file knows
  raw::Writer writer_;
  std::string iteration_kernel_;  ///< part of the name of a kernel that begins an iteration; empty: none does
  bool tried_ = false;
  std::optional<std::uint32_t> device_;  ///< the only one that the process has memory on
  pid_t process_ = 0;                    ///< whose file it is
  std::atomic<std::uint32_t> last_correlation_{0};
};

}  // namespace tidepool::dry
