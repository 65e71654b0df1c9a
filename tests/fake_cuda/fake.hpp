// A fake of NVIDIA's driver and CUPTI, to run the recorder without a GPU. libcuda.so.1 keeps records of
// allocations, launches and graphs, and reports calls and the work that "ran" to libcupti.so. Nothing is computed.
#pragma once

#include <cuda.h>
#include <cupti.h>

#include <cstddef>
#include <cstdint>
#include <ctime>
#include <string>
#include <string_view>

namespace fake {

/// Functions through which the driver's fake reports to CUPTI's.
struct Tool {
  void (*call)(CUpti_CallbackDomain domain, const char* name, CUpti_CallbackData* data);
  void (*resource)(CUpti_CallbackId id, CUpti_ResourceData* data);
  /// A record of an activity; CUPTI copies it if its kind is enabled.
  void (*record)(const void* record, std::size_t bytes);
};

/// The calls that have callbacks. Their numbers are indices of these two lists, not NVIDIA's numbers: the recorder
/// finds calls by name.
inline constexpr const char* kDriverCalls[] = {
    "invalid",
    "cuMemAlloc_v2",
    "cuMemAllocAsync",
    "cuMemFree_v2",
    "cuMemFreeAsync",
    "cuMemAddressReserve",
    "cuMemAddressFree",
    "cuMemCreate",
    "cuMemRelease",
    "cuMemMap",
    "cuMemUnmap",
    "cuLaunchKernel",
    "cuLaunchKernelEx",
    "cuMemcpyDtoDAsync_v2",
    "cuMemcpyHtoDAsync_v2",
    "cuMemcpyDtoHAsync_v2",
    "cuMemsetD32Async",
    "cuEventRecord",
    "cuStreamWaitEvent",
    "cuTensorMapEncodeTiled",
    "cuGraphLaunch",
    "cuGraphAddKernelNode",
    "cuCtxSynchronize",
    "cuGraphExecKernelNodeSetParams_v2",
    "cuGraphNodeSetParams",
    "cuGraphExecNodeSetParams",
};
inline constexpr const char* kRuntimeCalls[] = {"invalid", "cudaLaunchKernel_v7000", "cudaMemcpyAsync_v3020",
                                                "__cudaLaunchKernel_v13000"};

/// Records as later versions of CUPTI extend them.
struct MemoryRecord {
  CUpti_ActivityMemory3 base;
  const char* source;
};
struct SynchronizationRecord {
  CUpti_ActivitySynchronization base;
  std::uint64_t sync_id;
  std::uint32_t result, pad;
};
struct EventRecord {
  CUpti_ActivityCudaEvent base;
  std::uint32_t device, pad;
  void* reserved;
  std::uint64_t device_time, sync_id;
};

/// Time of the device and of CUPTI's clock, in ns since 1970.
inline std::uint64_t now() {
  timespec time{};
  clock_gettime(CLOCK_REALTIME, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(time.tv_nsec);
}

/// The value of a fault in FAKE_FAULTS ("drop=3,duplicate,subscriber=Kineto"): its text, "1" if it has none, "" if
/// the fault is not requested. The faults:
///   drop=N         CUPTI loses every N-th record
///   zero=N         every N-th kernel has no times; slow=MS: every kernel takes MS ms, not 1 us
///   duplicate      a second context of the device reports records of memory, too
///   correlation=   the call whose id a record has, see fake_runtime()
///   kernel-handles, no-layout   the driver refuses questions about functions, see refusal_of_kernels()
///   subscriber=NAME   another tool has subscribed; privileges: records cannot be enabled
///   late-callback   the first callback of a thread other than the main one reaches the tool after cuptiFinalize
///   late-answers   CUPTI tells version and names only after the first subscription; hang-flush: a flush never ends
inline std::string fault(std::string_view name) {
  const char* const variable = getenv("FAKE_FAULTS");
  std::string_view rest = variable == nullptr ? "" : variable;
  while (!rest.empty()) {
    const std::string_view one = rest.substr(0, rest.find(','));
    rest.remove_prefix(one.size() == rest.size() ? one.size() : one.size() + 1);
    if (one.substr(0, one.find('=')) == name)
      return one.find('=') == std::string_view::npos ? "1" : std::string{one.substr(one.find('=') + 1)};
  }
  return "";
}

/// The value of a fault as a number; 0 if the fault is not requested.
inline unsigned fault_every(std::string_view name) {
  const std::string text = fault(name);
  return text.empty() ? 0 : static_cast<unsigned>(std::stoul(text));
}

}  // namespace fake

extern "C" {
// Functions that libcuda.so.1 exports besides the driver's.
void fake_attach(const fake::Tool* tool);
/// Makes a kernel with parameters of these offsets and sizes, in bytes. @return  its handle for launches
CUfunction fake_function(const char* name, const std::size_t* offsets, const std::size_t* sizes, std::size_t count);
/// Allocates memory without callbacks and records, as if before the recorder was loaded.
CUdeviceptr fake_hidden_alloc(std::size_t bytes);
/// The thread enters or leaves a call of the runtime; calls may be nested. Work that it launches meanwhile by driver
/// calls has the id of the outermost runtime call. The fault "correlation" changes this: with "inner" it is the id of
/// the innermost runtime call, with "driver" that of the driver call.
void fake_runtime(const char* name, bool enter);
/// The thread's next driver call takes so many ms longer.
void fake_delay(unsigned milliseconds);
/// Unloads the module of a function. The next function gets its handle.
void fake_unload(CUfunction function);
/// Sets `id` to the number of a stream (or node). @return  whether it exists
bool fake_stream_id(CUstream stream, std::uint32_t* id);
bool fake_graph_node_id(CUgraphNode node, std::uint64_t* id);
}
