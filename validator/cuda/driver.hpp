// The part of NVIDIA's driver that Tidepool uses. It is loaded when it is needed, so that the program runs without it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>

namespace tidepool::cuda {

// Declarations with the same numbers and sizes as in cuda.h; validator/cuda/header_check.cpp compares them if cuda.h is
// installed.
using Status = int;
using Device = int;
struct ContextTag;
struct ModuleTag;
struct FunctionTag;
struct StreamTag;  // hides the tag of this name in the enclosing namespace, which is for streams of a trace
struct EventTag;
struct GraphTag;
struct GraphExecTag;
using Context = ContextTag*;
using Module = ModuleTag*;
using Function = FunctionTag*;
using Stream = StreamTag*;
using Event = EventTag*;
using Graph = GraphTag*;
using GraphExec = GraphExecTag*;
using Address = unsigned long long;
using PhysicalMemory = unsigned long long;

inline constexpr Status kSuccess = 0, kErrorOutOfMemory = 2, kErrorNotReady = 600;
inline constexpr unsigned kStreamNonBlocking = 1, kEventNoTiming = 2, kEventRecordExternal = 1;
inline constexpr unsigned kHostPortable = 1, kHostDeviceMap = 2;
inline constexpr int kAttributeProcessors = 16, kAttributeMajor = 75, kAttributeMinor = 76;
inline constexpr int kAttributeMapsMemory = 102;
inline constexpr int kCaptureRelaxed = 2;

inline constexpr int kOnDevice = 1;
struct MemoryLocation {
  int type = kOnDevice, id = 0;
};
inline constexpr int kPinned = 1;
struct MemoryProperties {
  int type = kPinned, handle_types = 0;
  MemoryLocation location = {};
  void* win32 = nullptr;
  unsigned char flags[8] = {};
};
inline constexpr int kReadWrite = 3;
struct MemoryAccess {
  MemoryLocation location = {};
  int flags = kReadWrite;
};

/// The driver is absent, refuses or fails. what() is like "cuMemAlloc_v2: CUDA_ERROR_OUT_OF_MEMORY (out of memory)".
class Error : public std::runtime_error {
 public:
  Error(Status status, const std::string& what) : std::runtime_error{what}, status_{status} {}
  Status status() const { return status_; }

 private:
  Status status_;
};

/// A shared library, open as long as this object lives.
class Library {
 public:
  /// @throws Error  "libcuda.so.1: cannot open shared object file: ...; no NVIDIA driver is installed here"
  explicit Library(const std::string& path);
  ~Library();
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;
  /// @throws Error  if the library does not have it
  void* find(const char* name) const;

 private:
  void* handle_;
};

/// One function of the driver. A Driver calls it and throws unless it returns success.
template <class... Args>
class Call {
 public:
  Call(const Library& library, const char* name)
      : name_{name}, function_{reinterpret_cast<Status (*)(Args...)>(library.find(name))} {}
  /// Calls the function and returns its status, without an exception.
  Status status(Args... args) const { return function_(args...); }
  const char* name() const { return name_; }

 private:
  const char* name_;
  Status (*function_)(Args...);
};

/// All functions of the driver that Tidepool uses. One context for the process; any thread that has made it current may
/// call.
class Driver {
 private:
  Library library_;

 public:
  /// @throws Error  if there is no driver, or it is too old to have one of the functions
  explicit Driver(const std::string& path = "libcuda.so.1");

  /// Calls a function of this driver. @throws Error  unless it answers success
  template <class... Parameters, class... Args>
  void operator()(const Call<Parameters...>& function, Args... args) const {
    if (const Status status = function.status(args...); status != kSuccess) fail(status, function.name());
  }
  /// "CUDA_ERROR_OUT_OF_MEMORY (out of memory)"
  std::string text(Status status) const;
  /// @throws Error  "WHAT: CUDA_ERROR_OUT_OF_MEMORY (out of memory)"
  [[noreturn]] void fail(Status status, const std::string& what) const;

  const Call<unsigned> init{library_, "cuInit"};
  const Call<int*> version{library_, "cuDriverGetVersion"};
  const Call<Status, const char**> error_name{library_, "cuGetErrorName"};
  const Call<Status, const char**> error_string{library_, "cuGetErrorString"};
  const Call<int*> device_count{library_, "cuDeviceGetCount"};
  const Call<Device*, int> device_get{library_, "cuDeviceGet"};
  const Call<char*, int, Device> device_name{library_, "cuDeviceGetName"};
  const Call<int*, int, Device> device_attribute{library_, "cuDeviceGetAttribute"};
  const Call<Context*, Device> context_retain{library_, "cuDevicePrimaryCtxRetain"};
  const Call<Device> context_release{library_, "cuDevicePrimaryCtxRelease_v2"};
  const Call<Context> context_set{library_, "cuCtxSetCurrent"};
  const Call<std::size_t*, std::size_t*> memory_info{library_, "cuMemGetInfo_v2"};
  const Call<Address*, std::size_t> allocate{library_, "cuMemAlloc_v2"};
  const Call<Address> free{library_, "cuMemFree_v2"};
  const Call<Address*, std::size_t, std::size_t, Address, unsigned long long> address_reserve{library_,
                                                                                              "cuMemAddressReserve"};
  const Call<Address, std::size_t> address_free{library_, "cuMemAddressFree"};
  const Call<PhysicalMemory*, std::size_t, const MemoryProperties*, unsigned long long> memory_create{library_,
                                                                                                      "cuMemCreate"};
  const Call<PhysicalMemory> memory_release{library_, "cuMemRelease"};
  const Call<Address, std::size_t, std::size_t, PhysicalMemory, unsigned long long> memory_map{library_, "cuMemMap"};
  const Call<Address, std::size_t> memory_unmap{library_, "cuMemUnmap"};
  const Call<Address, std::size_t, const MemoryAccess*, std::size_t> memory_access{library_, "cuMemSetAccess"};
  const Call<void**, std::size_t, unsigned> host_allocate{library_, "cuMemHostAlloc"};
  const Call<void*> host_free{library_, "cuMemFreeHost"};
  const Call<Address, const void*, std::size_t> copy_in_now{library_, "cuMemcpyHtoD_v2"};
  const Call<void*, Address, std::size_t> copy_out_now{library_, "cuMemcpyDtoH_v2"};
  const Call<Address, const void*, std::size_t, Stream> copy_in{library_, "cuMemcpyHtoDAsync_v2"};
  const Call<void*, Address, std::size_t, Stream> copy_out{library_, "cuMemcpyDtoHAsync_v2"};
  const Call<Address, Address, std::size_t, Stream> copy_within{library_, "cuMemcpyDtoDAsync_v2"};
  const Call<Module*, const void*> module_load{library_, "cuModuleLoadData"};
  const Call<Module> module_unload{library_, "cuModuleUnload"};
  const Call<Function*, Module, const char*> module_function{library_, "cuModuleGetFunction"};
  const Call<Function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, Stream, void**, void**>
      launch{library_, "cuLaunchKernel"};
  const Call<Stream*, unsigned> stream_create{library_, "cuStreamCreate"};
  const Call<Stream> stream_destroy{library_, "cuStreamDestroy_v2"};
  const Call<Stream> stream_query{library_, "cuStreamQuery"};
  const Call<Stream, Event, unsigned> stream_wait{library_, "cuStreamWaitEvent"};
  const Call<Event*, unsigned> event_create{library_, "cuEventCreate"};
  const Call<Event> event_destroy{library_, "cuEventDestroy_v2"};
  const Call<Event, Stream> event_record{library_, "cuEventRecord"};
  const Call<Event, Stream, unsigned> event_record_with{library_, "cuEventRecordWithFlags"};
  const Call<Event> event_query{library_, "cuEventQuery"};
  const Call<float*, Event, Event> event_elapsed{library_, "cuEventElapsedTime"};  ///< in ms
  const Call<Stream, int> capture_begin{library_, "cuStreamBeginCapture_v2"};
  const Call<Stream, Graph*> capture_end{library_, "cuStreamEndCapture"};
  const Call<GraphExec*, Graph, unsigned long long> graph_instantiate{library_, "cuGraphInstantiateWithFlags"};
  const Call<GraphExec, Stream> graph_upload{library_, "cuGraphUpload"};
  const Call<GraphExec, Stream> graph_launch{library_, "cuGraphLaunch"};
  const Call<Graph> graph_destroy{library_, "cuGraphDestroy"};
  const Call<GraphExec> graph_exec_destroy{library_, "cuGraphExecDestroy"};
};

}  // namespace tidepool::cuda
