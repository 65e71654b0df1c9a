// State of the fake of libcuda.so.1 (fake.hpp), its callbacks, and its records for the fake of CUPTI.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <initializer_list>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/fake_cuda/fake.hpp"
#include "tests/fake_cuda/handles.hpp"

struct CUctx_st {};
struct CUstream_st {
  std::uint32_t id;
  bool capturing;
  std::atomic<std::uint64_t> busy_until{0};  ///< ns
};
struct CUevent_st {
  std::uint32_t id;
  std::uint64_t sync_id;
};
struct CUfunc_st {
  std::string name;
  std::vector<std::pair<std::size_t, std::size_t>> parameters;
};
struct CUgraphNode_st {
  std::uint64_t id;
  CUfunction function;
};
struct CUgraph_st {
  std::vector<std::unique_ptr<CUgraphNode_st>> nodes;
};
struct CUgraphExec_st {
  std::vector<std::unique_ptr<CUgraphNode_st>> nodes, destroyed;
};

namespace fake {

inline constexpr std::uint32_t kContext = 1, kDefaultStream = 7;

inline std::atomic<const Tool*> tool = nullptr;
inline std::mutex mutex;
inline CUctx_st context;
inline CUstream_st default_stream{kDefaultStream, false, {}};
inline CUstream_st* const known_default_stream = Handles<CUstream_st>::add(&default_stream);
inline std::map<CUdeviceptr, std::size_t> memory;
inline CUgraph capture;  // of the one stream that may capture
inline std::atomic<bool> stream_is_capturing{false};
inline CUgraphExec destroyed_exec;    // its address is used again for the next one
inline CUfunction unloaded_function;  // its handle is used again for the next one
inline std::atomic<std::uint32_t> correlations{0}, streams{kDefaultStream}, events{0};
inline std::atomic<std::uint64_t> nodes{100}, sync_ids{0}, kernels{0}, work_ends{0};
inline thread_local std::uint32_t current = 0;
inline thread_local unsigned delay_ms = 0;

struct RuntimeCall {
  std::uint32_t correlation;
  std::uint64_t storage;
};
inline thread_local std::vector<RuntimeCall> runtime_calls;  // nested runtime calls of the thread, the outermost first

inline CUstream_st& stream_of(CUstream stream) { return stream == nullptr ? default_stream : *stream; }
inline std::uint32_t correlation() {
  static const std::string which = fake::fault("correlation");
  if (runtime_calls.empty() || which == "driver") return current;
  return (which == "inner" ? runtime_calls.back() : runtime_calls.front()).correlation;
}

/// The error with which cuFuncGetParamInfo refuses handles of kernels. Success without the fault "kernel-handles". With
/// this fault, launches have handles of kernels instead of functions, and the error is CUDA_ERROR_INVALID_VALUE if the
/// value of the fault is "value", otherwise CUDA_ERROR_INVALID_HANDLE. cuFuncGetName always refuses with the latter.
inline CUresult refusal_of_kernels() {
  static const std::string fault = fake::fault("kernel-handles");
  if (fault.empty()) return CUDA_SUCCESS;
  return fault == "value" ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_HANDLE;
}

template <class Record>
void emit(const Record& record) {
  if (const Tool* const told = tool) told->record(&record, sizeof record);
}

inline void tell(CUpti_CallbackDomain domain, CUpti_ApiCallbackSite site, const char* name, const void* params,
                 CUresult* result, std::uint64_t* storage, std::uint32_t id) {
  const Tool* const told = tool;
  if (told == nullptr) return;
  CUpti_CallbackData data{};
  data.callbackSite = site;
  data.functionName = name;
  data.functionParams = params;
  data.functionReturnValue = result;
  data.context = &context;
  data.contextUid = kContext;
  data.correlationData = storage;
  data.correlationId = id;
  told->call(domain, name, &data);
}

/// A call of the driver, with its callbacks around it.
template <class Params, class Body>
CUresult call(const char* name, Params params, Body body) {
  std::uint64_t storage = 0;
  CUresult result = CUDA_SUCCESS;
  const std::uint32_t id = ++correlations;
  tell(CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_API_ENTER, name, &params, &result, &storage, id);
  current = id;
  if (delay_ms != 0) std::this_thread::sleep_for(std::chrono::milliseconds{std::exchange(delay_ms, 0U)});
  result = checked(body);
  tell(CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_API_EXIT, name, &params, &result, &storage, id);
  return result;
}

inline void resource(CUpti_CallbackId id, CUstream stream, void* descriptor) {
  const Tool* const told = tool;
  if (told == nullptr) return;
  CUpti_ResourceData data{};
  data.context = &context;
  data.resourceHandle.stream = stream;
  data.resourceDescriptor = descriptor;
  told->resource(id, &data);
}

inline void node_event(CUpti_CallbackId id, CUgraphNode node, CUgraphNode original, CUgraphExec exec) {
  CUpti_GraphData data{};
  data.node = node;
  data.originalNode = original;
  data.nodeType = CU_GRAPH_NODE_TYPE_KERNEL;
  data.graphExec = exec;
  resource(id, nullptr, &data);
}

inline CUgraphNode add_node(CUgraph graph, CUfunction function) {
  graph->nodes.push_back(std::make_unique<CUgraphNode_st>(CUgraphNode_st{++nodes, function}));
  CUgraphNode node = Handles<CUgraphNode_st>::add(graph->nodes.back().get());
  node_event(CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED, node, nullptr, nullptr);
  return node;
}

/// Begin and end, in ns, of work that a stream gets now. The work follows all earlier work of the stream.
inline std::pair<std::uint64_t, std::uint64_t> times_of(CUstream stream, std::uint64_t duration) {
  std::atomic<std::uint64_t>& busy = stream_of(stream).busy_until;
  std::uint64_t before = busy, begin = 0;
  do begin = std::max(before, now());
  while (!busy.compare_exchange_weak(before, begin + duration));
  std::uint64_t latest = work_ends;
  while (latest < begin + duration && !work_ends.compare_exchange_weak(latest, begin + duration)) continue;
  return {begin, begin + duration};
}

/// Whether these bytes are all in allocated memory of the device.
inline bool is_allocated(CUdeviceptr address, std::size_t bytes) {
  const std::lock_guard lock{mutex};
  const auto behind = memory.upper_bound(address);
  if (behind == memory.begin()) return false;
  const auto& [begin, size] = *std::prev(behind);
  return address - begin <= size && bytes <= size - (address - begin);
}

/// Allocates a multiple of 512 bytes. First fit, so that addresses are used again, as with a real allocator. The caller
/// holds the mutex.
inline CUdeviceptr place(std::size_t bytes) {
  const std::size_t size = (bytes + 511) / 512 * 512;
  CUdeviceptr at = 0x7f4000000000;
  for (const auto& [begin, taken] : memory) {
    if (begin - at >= size) break;
    at = begin + taken;
  }
  memory[at] = size;
  return at;
}

inline void emit_memory(CUpti_ActivityMemoryOperationType operation, CUdeviceptr address, std::size_t bytes,
                        CUstream stream) {
  static const bool duplicate = !fake::fault("duplicate").empty();
  MemoryRecord record{};
  record.base.kind = CUPTI_ACTIVITY_KIND_MEMORY2;
  record.base.memoryOperationType = operation;
  record.base.memoryKind = CUPTI_ACTIVITY_MEMORY_KIND_DEVICE;
  record.base.correlationId = correlation();
  record.base.address = address;
  record.base.bytes = bytes;
  record.base.timestamp = now();
  record.base.contextId = kContext;
  record.base.isAsync = stream != nullptr;
  record.base.streamId = stream != nullptr ? stream->id : CUPTI_INVALID_STREAM_ID;
  record.source = "/opt/somewhere/libjob.so";
  emit(record);
  if (!duplicate) return;
  record.base.contextId = kContext + 1;  // the other context of the device reports the record, too
  emit(record);
}

inline void emit_kernel(CUfunction function, CUstream stream, std::uint64_t node, unsigned grid) {
  static const unsigned zero = fault_every("zero"), slow_ms = fault_every("slow");
  CUpti_ActivityKernel9 record{};
  record.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
  const bool lost = zero != 0 && ++kernels % zero == 0;
  const auto [begin, end] = times_of(stream, slow_ms == 0 ? 1000 : std::uint64_t{1'000'000} * slow_ms);
  record.start = lost ? 0 : begin;
  record.end = lost ? 0 : end;
  record.contextId = kContext;
  record.streamId = stream_of(stream).id;
  record.gridX = static_cast<std::int32_t>(grid);
  record.gridY = record.gridZ = record.blockX = record.blockY = record.blockZ = 1;
  record.correlationId = correlation();
  record.name = function->name.c_str();
  record.graphNodeId = node;
  emit(record);
}

inline CUresult launch(CUfunction function, CUstream stream, unsigned grid) {
  if (const CUresult result = ready(function, &stream_of(stream)); result != CUDA_SUCCESS) return result;
  const std::lock_guard lock{mutex};
  if (stream_of(stream).capturing)
    add_node(capture, function);
  else
    emit_kernel(function, stream, 0, grid);
  return CUDA_SUCCESS;
}

/// A record of a copy or a fill, which takes 500 ns after the earlier work of the stream.
template <class Record>
Record transfer(CUpti_ActivityKind kind, std::size_t bytes, CUstream stream) {
  Record record{};
  record.kind = kind;
  record.bytes = bytes;
  const auto [begin, end] = times_of(stream, 500);
  record.start = begin;
  record.end = end;
  record.contextId = kContext;
  record.streamId = stream_of(stream).id;
  record.correlationId = correlation();
  return record;
}

/// @param spans  first addresses of the device memory that the copy reads and writes, `bytes` each
inline CUresult copy(std::initializer_list<CUdeviceptr> spans, std::size_t bytes, CUstream stream,
                     CUpti_ActivityMemcpyKind kind) {
  if (const CUresult result = ready(&stream_of(stream)); result != CUDA_SUCCESS) return result;
  for (const CUdeviceptr address : spans)
    if (!is_allocated(address, bytes)) return CUDA_ERROR_INVALID_VALUE;
  auto record = transfer<CUpti_ActivityMemcpy5>(CUPTI_ACTIVITY_KIND_MEMCPY, bytes, stream);
  record.copyKind = static_cast<std::uint8_t>(kind);
  emit(record);
  return CUDA_SUCCESS;
}

inline CUresult release(CUdeviceptr address, CUstream stream) {
  if (const CUresult result = ready(&stream_of(stream)); result != CUDA_SUCCESS) return result;
  const std::lock_guard lock{mutex};
  const auto found = memory.find(address);
  if (found == memory.end()) return CUDA_ERROR_INVALID_VALUE;
  emit_memory(CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_RELEASE, address, found->second, stream);
  memory.erase(found);
  return CUDA_SUCCESS;
}

inline CUresult obtain(CUdeviceptr* address, std::size_t bytes, CUstream stream) {
  if (const CUresult result = ready(&stream_of(stream)); result != CUDA_SUCCESS) return result;
  if (bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  if (stream_is_capturing) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  const std::lock_guard lock{mutex};
  *address = place(bytes);
  emit_memory(CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_ALLOCATION, *address, bytes, stream);
  return CUDA_SUCCESS;
}

}  // namespace fake
