// The device that the dry device answers for: one per process, made at the first call.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "tracer/cupti/torch_kernels.hpp"
#include "tracer/dry/cubin.hpp"
#include "tracer/dry/device/recorder.hpp"
#include "tracer/dry/device_memory.hpp"
#include "tracer/dry/preset.hpp"
#include "tracer/dry/ranks/pending_results.hpp"
#include "tracer/dry/size_addition.hpp"
#include "tracer/dry/size_reduction.hpp"

namespace tidepool::dry {

/// Status codes of the CUDA runtime and driver that the dry device answers with (driver_types.h and cuda.h agree on
/// these).
using Status = int;
inline constexpr Status kSuccess = 0, kInvalidValue = 1, kOutOfMemory = 2, kNotFound = 500, kNoDevice = 100,
                        kInvalidDevice = 101, kInvalidImage = 200, kInvalidHandle = 400, kNotSupported = 801,
                        kCaptureInvalid = 901;

struct Dim3 {
  unsigned x = 1, y = 1, z = 1;
};

/// A stream of the program. Its work is done when it is issued, except that results of other ranks may come later. The
/// stream keeps the clock of estimated times.
struct Stream {
  std::uint64_t id = 0;
  int priority = 0;
  unsigned flags = 0;
  std::uint64_t end_ns = 0;         ///< estimated end of the work issued so far
  struct Graph* capture = nullptr;  ///< work is captured into it instead of run; null: work runs
  bool replaying = false;           ///< a graph is replayed: its work counts as issued when the graph was launched
  ResultNumbers results;            ///< results of other ranks that the stream waits for
};

struct Event {
  std::uint64_t id = 0;
  std::uint64_t time_ns = 0;        ///< estimated
  struct Graph* capture = nullptr;  ///< recorded while this graph was captured
  ResultNumbers results;            ///< results of other ranks that the event waits for
};

/// Captured work, in issue order.
struct Graph {
  std::vector<std::function<void(Stream&)>> work;
  std::unordered_set<Stream*> streams;  ///< whose work is captured into it now
};

/// A kernel of the program, with the facts from its binary.
struct Kernel {
  std::string name;  ///< mangled
  KernelBinary binary;
  bool known = false;  ///< the binary was found
  std::optional<cupti::TorchKernel> torch;
  std::vector<cupti::Role> roles;                ///< of the parameters, if the program stated them
  std::optional<SizeReduction::Operator> sizes;  ///< if it is PyTorch's reduction of sizes
  std::optional<SizeAddition::Operands> adds;    ///< if it is PyTorch's addition to sizes
};

/// A binary that the program loads itself.
struct Module {
  std::map<std::string, KernelBinary> kernels;
  bool known = false;  ///< false: it is no cubin (PTX), so it may have kernels of any name
};

/// A kernel's computation on sizes: the ranges that it reads and the one that it writes.
struct SizeWork {
  std::vector<ByteRange> reads;
  ByteRange writes;
  std::function<void()> compute;
};

struct Launch {
  const Kernel* kernel = nullptr;
  Dim3 grid, block;
  std::size_t shared_bytes = 0;
};

class DryDevice {
 public:
  /// Made at the first call, from $TIDEPOOL_DRY_DEVICE, $TIDEPOOL_DRY_CAPACITY and $TIDEPOOL_DRY_PLACEMENT. A wrong
  /// device or capacity ends the process with exit code 2.
  static DryDevice& get();

  const DevicePreset& preset() const { return preset_; }
  DeviceMemory& memory() { return memory_; }
  Recorder& recorder() { return recorder_; }
  std::uint64_t limit() const;  ///< the bytes of its memory, with those of the context
  /// The bytes of memory that the job is told of: limit() or, if it has no end, those of the preset.
  /// $TIDEPOOL_DRY_TOTAL replaces them: a job whose memory has no end chooses sizes as on the device that is judged.
  std::uint64_t total() const;
  std::uint64_t free() const;  ///< those of total() that are free

  /// The number of devices, and the device of the calling thread. Each process has memory on one device.
  int devices() const { return devices_; }
  static int device();
  bool set_device(int device);  ///< false: there is no such device
  /// Whether the calling thread's device is the one on which the process has memory. The first call decides which one
  /// that is. If the answer is no, a message is printed on stderr, once.
  bool owns_device();

  /// cudaMalloc; none: out of memory, or the process has its memory on another device.
  std::optional<std::uint64_t> allocate(std::size_t bytes);
  bool free(std::uint64_t address);  ///< cudaFree; false: no allocation begins at the address

  Stream& stream(void* handle);  ///< 0, 1 and 2 are the default stream
  /// The caller owns the stream or the event.
  Stream* make_stream(unsigned flags, int priority);
  Event* make_event();

  /// Does work on a stream, or adds it to the graph that captures the stream.
  void submit(Stream& stream, std::function<void(Stream&)> work);
  /// The following submit their work, except three. compute() is part of work that runs now: it computes at once or, if
  /// its inputs are pending results, when its own result is fetched. wait() and record() act at once; during a capture
  /// they join the stream to it, or mark the event.
  void launch(Stream& stream, const Launch& launch, const void* const* arguments);
  void compute(Stream& stream, const SizeWork& sizes);
  void call(Stream& stream, const LibraryCall& call);
  void call(Stream& stream, const CollectiveCall& call);
  void copy(Stream& stream, void* to, const void* from, std::size_t bytes);
  void fill(Stream& stream, void* to, unsigned char value, std::size_t bytes);
  void wait(Stream& stream, const Event& event);
  void record(Event& event, Stream& stream);

  /// `name` and `fat_binary` are kept, not copied.
  void register_function(const void* host, const char* name, const std::byte* fat_binary);
  void register_variable(const void* host, std::size_t bytes);
  /// The kernel behind a host function or a kernel's handle; null if it was never registered or loaded.
  const Kernel* kernel(const void* host);
  /// A module of the driver's interface, until it is unloaded.
  const Module* load_module(std::span<const std::byte> image);
  /// Whether the module was loaded.
  bool unload_module(const void* module);
  /// Finds a kernel in a module. It lives as long as the device, and is its own handle.
  Status function(const Kernel*& kernel, const void* module, const char* name);
  /// What the kernel reads and writes: a letter for each parameter, r, w, b (both) or - (neither).
  void state_uses(const void* kernel, std::string_view letters);
  /// The device address of a registered variable; null if it was never registered, or the device is out of memory.
  void* variable(const void* host);

 private:
  DryDevice();
  /// A fork waits for other threads' calls: their locks would stay locked in the child, which has no such threads.
  void before_fork();
  void after_fork();

  const DevicePreset& preset_;
  const int devices_;
  DeviceMemory memory_;
  Recorder recorder_;
  std::mutex mutex_;
  std::array<std::unique_lock<std::mutex>, 4> held_;  ///< during a fork
  Stream default_stream_;
  std::uint64_t last_stream_ = 0, last_event_ = 0;

  struct Registered {
    const char* name;
    const std::byte* fat_binary;
  };
  std::unordered_map<const void*, Registered> functions_;
  std::unordered_map<const void*, std::unique_ptr<Kernel>> kernels_;
  std::unordered_map<const void*, std::unique_ptr<Module>> modules_;
  std::unordered_map<const std::byte*, std::map<std::string, KernelBinary>> layouts_;
  std::unordered_map<const void*, std::pair<std::size_t, std::uint64_t>>
      variables_;  ///< bytes and device address; 0 until it is asked for
};

/// Remembers `status`, unless it is kSuccess, as the thread's last error. @return  `status`
Status done(Status status);
Status last_error();       ///< of the thread
Status take_last_error();  ///< clears it
const char* status_name(Status status);
const char* status_text(Status status);

/// Reports on stderr, once for each `what`, that the program asked for something that the dry run does not answer.
void not_answered(const char* what);

/// A function of a loaded library whose file name begins with `library` ("libcudnn"); null if there is none. For
/// questions that the real library answers without a device.
void* real_function(const char* library, const char* name);

}  // namespace tidepool::dry
