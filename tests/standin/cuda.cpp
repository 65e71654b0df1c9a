// libcuda.so.1, the stand-in: see standin.hpp.
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "tests/standin/cuda_state.hpp"

using namespace standin;

extern "C" {

void standin_attach(const standin::Tool* attached) { tool = attached; }

CUfunction standin_function(const char* name, const std::size_t* offsets, const std::size_t* sizes, std::size_t count) {
  CUfunc_st* const function = kept(new CUfunc_st{name, {}});
  for (std::size_t i = 0; i < count; ++i) function->parameters.emplace_back(offsets[i], sizes[i]);
  return function;
}

CUdeviceptr standin_hidden_alloc(std::size_t bytes) {
  const std::lock_guard lock{mutex};
  return place(bytes);
}

void standin_runtime(const char* name, bool enter) {
  if (enter) runtime_calls.push_back({++correlations, 0});
  RuntimeCall& call = runtime_calls.back();
  tell(CUPTI_CB_DOMAIN_RUNTIME_API, enter ? CUPTI_API_ENTER : CUPTI_API_EXIT, name, nullptr, nullptr, &call.storage,
       call.correlation);
  if (!enter) runtime_calls.pop_back();
}

void standin_delay(unsigned milliseconds) { delay_ms = milliseconds; }

std::uint64_t standin_graph_node_id(CUgraphNode node) { return node->id; }

CUresult cuInit(unsigned) {
  static std::once_flag once;
  std::call_once(once, [] {
    const char* const path = getenv("CUDA_INJECTION64_PATH");
    void* const library = path == nullptr ? nullptr : dlopen(path, RTLD_NOW);
    if (path != nullptr && library == nullptr) std::fprintf(stderr, "standin: %s\n", dlerror());
    if (library == nullptr) return;
    if (const auto initialize = reinterpret_cast<int (*)()>(dlsym(library, "InitializeInjection"))) initialize();
  });
  return CUDA_SUCCESS;
}

CUresult cuDriverGetVersion(int* version) {
  *version = 12040;
  return CUDA_SUCCESS;
}

CUresult cuFuncGetName(const char** name, CUfunction function) {
  if (refusal_of_kernels() != CUDA_SUCCESS) return CUDA_ERROR_INVALID_HANDLE;
  *name = function->name.c_str();
  return CUDA_SUCCESS;
}

CUresult cuFuncGetParamInfo(CUfunction function, std::size_t index, std::size_t* offset, std::size_t* size) {
  static const bool unable = !standin::fault("no-layout").empty();
  if (unable) return CUDA_ERROR_NOT_SUPPORTED;
  if (refusal_of_kernels() != CUDA_SUCCESS) return refusal_of_kernels();
  if (index >= function->parameters.size()) return CUDA_ERROR_INVALID_VALUE;
  std::tie(*offset, *size) = function->parameters[index];
  return CUDA_SUCCESS;
}

CUresult cuKernelGetName(const char** name, CUkernel kernel) {
  if (refusal_of_kernels() == CUDA_SUCCESS) return CUDA_ERROR_INVALID_HANDLE;
  *name = reinterpret_cast<CUfunction>(kernel)->name.c_str();
  return CUDA_SUCCESS;
}

CUresult cuKernelGetParamInfo(CUkernel kernel, std::size_t index, std::size_t* offset, std::size_t* size) {
  if (refusal_of_kernels() == CUDA_SUCCESS) return CUDA_ERROR_INVALID_HANDLE;
  const auto& parameters = reinterpret_cast<CUfunction>(kernel)->parameters;
  if (index >= parameters.size()) return CUDA_ERROR_INVALID_VALUE;
  std::tie(*offset, *size) = parameters[index];
  return CUDA_SUCCESS;
}

CUresult cuPointerGetAttributes(unsigned count, CUpointer_attribute* attributes, void** values, CUdeviceptr pointer) {
  const std::lock_guard lock{mutex};
  auto found = memory.upper_bound(pointer);
  const bool inside = found != memory.begin() && pointer - std::prev(found)->first < std::prev(found)->second;
  for (unsigned i = 0; i < count; ++i) {
    if (attributes[i] == CU_POINTER_ATTRIBUTE_RANGE_START_ADDR)
      *static_cast<CUdeviceptr*>(values[i]) = inside ? std::prev(found)->first : 0;
    if (attributes[i] == CU_POINTER_ATTRIBUTE_RANGE_SIZE)
      *static_cast<std::size_t*>(values[i]) = inside ? std::prev(found)->second : 0;
    if (attributes[i] == CU_POINTER_ATTRIBUTE_MEMORY_TYPE)
      *static_cast<CUmemorytype*>(values[i]) = inside ? CU_MEMORYTYPE_DEVICE : CUmemorytype{};
    if (attributes[i] == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL) *static_cast<int*>(values[i]) = inside ? 0 : -2;
  }
  return CUDA_SUCCESS;
}

CUresult cuStreamCreate(CUstream* stream, unsigned) {
  *stream = kept(new CUstream_st{++streams, false});
  resource(CUPTI_CBID_RESOURCE_STREAM_CREATED, *stream, nullptr);
  return CUDA_SUCCESS;
}

CUresult cuEventCreate(CUevent* event, unsigned) {
  *event = kept(new CUevent_st{++events, 0});
  return CUDA_SUCCESS;
}

CUresult cuMemAlloc_v2(CUdeviceptr* address, std::size_t bytes) {
  return call("cuMemAlloc_v2", cuMemAlloc_v2_params{address, bytes}, [&] { return obtain(address, bytes, nullptr); });
}
CUresult cuMemAllocAsync(CUdeviceptr* address, std::size_t bytes, CUstream stream) {
  return call("cuMemAllocAsync", cuMemAllocAsync_params{address, bytes, stream},
              [&] { return obtain(address, bytes, &stream_of(stream)); });
}
CUresult cuMemFree_v2(CUdeviceptr address) {
  return call("cuMemFree_v2", cuMemFree_v2_params{address}, [&] { return release(address, nullptr); });
}
CUresult cuMemFreeAsync(CUdeviceptr address, CUstream stream) {
  return call("cuMemFreeAsync", cuMemFreeAsync_params{address, stream},
              [&] { return release(address, &stream_of(stream)); });
}

CUresult cuMemAddressReserve(CUdeviceptr* address, std::size_t bytes, std::size_t alignment, CUdeviceptr wish,
                             unsigned long long flags) {
  return call("cuMemAddressReserve", cuMemAddressReserve_params{address, bytes, alignment, wish, flags}, [&] {
    const std::lock_guard lock{mutex};
    *address = place(bytes);
    memory.erase(*address);  // addresses, but no memory yet
    return CUDA_SUCCESS;
  });
}
CUresult cuMemAddressFree(CUdeviceptr address, std::size_t bytes) {
  return call("cuMemAddressFree", cuMemAddressFree_params{address, bytes}, [] { return CUDA_SUCCESS; });
}
CUresult cuMemCreate(CUmemGenericAllocationHandle* handle, std::size_t bytes, const CUmemAllocationProp* properties,
                     unsigned long long flags) {
  return call("cuMemCreate", cuMemCreate_params{handle, bytes, properties, flags}, [&] {
    const std::lock_guard lock{mutex};
    *handle = physical.size() + 1000;
    physical[*handle] = bytes;
    return CUDA_SUCCESS;
  });
}
CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
  return call("cuMemRelease", cuMemRelease_params{handle}, [] { return CUDA_SUCCESS; });
}
CUresult cuMemMap(CUdeviceptr address, std::size_t bytes, std::size_t offset, CUmemGenericAllocationHandle handle,
                  unsigned long long flags) {
  return call("cuMemMap", cuMemMap_params{address, bytes, offset, handle, flags}, [&] {
    const std::lock_guard lock{mutex};
    memory[address] = bytes;
    return CUDA_SUCCESS;
  });
}
CUresult cuMemUnmap(CUdeviceptr address, std::size_t bytes) {
  return call("cuMemUnmap", cuMemUnmap_params{address, bytes}, [&] {
    const std::lock_guard lock{mutex};
    memory.erase(address);
    return CUDA_SUCCESS;
  });
}

CUresult cuLaunchKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                        unsigned shared, CUstream stream, void** values, void** extra) {
  return call("cuLaunchKernel", cuLaunchKernel_params{f, gx, gy, gz, bx, by, bz, shared, stream, values, extra},
              [&] { return launch(f, stream, gx); });
}
CUresult cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction f, void** values, void** extra) {
  return call("cuLaunchKernelEx", cuLaunchKernelEx_params{config, f, values, extra},
              [&] { return launch(f, config->hStream, config->gridDimX); });
}

CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, std::size_t bytes, CUstream stream) {
  return call("cuMemcpyDtoDAsync_v2", cuMemcpyDtoDAsync_v2_params{to, from, bytes, stream},
              [&] { return copy(bytes, stream, CUPTI_ACTIVITY_MEMCPY_KIND_DTOD); });
}
CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void* from, std::size_t bytes, CUstream stream) {
  return call("cuMemcpyHtoDAsync_v2", cuMemcpyHtoDAsync_v2_params{to, from, bytes, stream},
              [&] { return copy(bytes, stream, CUPTI_ACTIVITY_MEMCPY_KIND_HTOD); });
}
CUresult cuMemcpyDtoHAsync_v2(void* to, CUdeviceptr from, std::size_t bytes, CUstream stream) {
  return call("cuMemcpyDtoHAsync_v2", cuMemcpyDtoHAsync_v2_params{to, from, bytes, stream},
              [&] { return copy(bytes, stream, CUPTI_ACTIVITY_MEMCPY_KIND_DTOH); });
}
CUresult cuMemsetD32Async(CUdeviceptr to, unsigned value, std::size_t count, CUstream stream) {
  return call("cuMemsetD32Async", cuMemsetD32Async_params{to, value, count, stream}, [&] {
    auto record = transfer<CUpti_ActivityMemset4>(CUPTI_ACTIVITY_KIND_MEMSET, count * 4, stream);
    record.value = value;
    emit(record);
    return CUDA_SUCCESS;
  });
}

CUresult cuEventRecord(CUevent event, CUstream stream) {
  return call("cuEventRecord", cuEventRecord_params{event, stream}, [&] {
    event->sync_id = ++sync_ids;
    standin::EventRecord record{};
    record.base.kind = CUPTI_ACTIVITY_KIND_CUDA_EVENT;
    record.base.correlationId = correlation();
    record.base.contextId = kContext;
    record.base.streamId = stream_of(stream).id;
    record.base.eventId = event->id;
    record.sync_id = event->sync_id;
    emit(record);
    return CUDA_SUCCESS;
  });
}
CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags) {
  return call("cuStreamWaitEvent", cuStreamWaitEvent_params{stream, event, flags}, [&] {
    standin::SynchronizationRecord record{};
    record.base.kind = CUPTI_ACTIVITY_KIND_SYNCHRONIZATION;
    record.base.type = CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_WAIT_EVENT;
    record.base.start = now();
    record.base.end = now();
    record.base.correlationId = correlation();
    record.base.contextId = kContext;
    record.base.streamId = stream_of(stream).id;
    record.base.cudaEventId = event->id;
    record.sync_id = event->sync_id;
    emit(record);
    return CUDA_SUCCESS;
  });
}
CUresult cuCtxSynchronize() {
  return call("cuCtxSynchronize", 0, [] { return CUDA_SUCCESS; });
}

CUresult cuTensorMapEncodeTiled(CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank, void* address,
                                const cuuint64_t* extents, const cuuint64_t* strides, const cuuint32_t* box,
                                const cuuint32_t* steps, CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                                CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill) {
  return call("cuTensorMapEncodeTiled",
              cuTensorMapEncodeTiled_params{map, type, rank, address, extents, strides, box, steps, interleave, swizzle,
                                            promotion, fill},
              [&] {
                // Opaque: the address is in it, but not as a word that a scan would find.
                std::memset(map, 0x5a, sizeof *map);
                const auto hidden = ~reinterpret_cast<std::uint64_t>(address);
                std::memcpy(reinterpret_cast<char*>(map) + 3, &hidden, sizeof hidden);
                return CUDA_SUCCESS;
              });
}

CUresult cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode) {
  capture = kept(new CUgraph_st);
  stream_of(stream).capturing = true;
  return CUDA_SUCCESS;
}
CUresult cuStreamEndCapture(CUstream stream, CUgraph* graph) {
  stream_of(stream).capturing = false;
  *graph = capture;
  return CUDA_SUCCESS;
}
CUresult cuGraphCreate(CUgraph* graph, unsigned) {
  *graph = kept(new CUgraph_st);
  return CUDA_SUCCESS;
}
CUresult cuGraphAddKernelNode_v2(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies, std::size_t count,
                                 const CUDA_KERNEL_NODE_PARAMS* parameters) {
  return call("cuGraphAddKernelNode", cuGraphAddKernelNode_v2_params{node, graph, dependencies, count, parameters},
              [&] {
                *node = add_node(graph, parameters->func);
                return CUDA_SUCCESS;
              });
}
CUresult cuGraphExecKernelNodeSetParams_v2(CUgraphExec exec, CUgraphNode node,
                                           const CUDA_KERNEL_NODE_PARAMS* parameters) {
  return call("cuGraphExecKernelNodeSetParams_v2", cuGraphExecKernelNodeSetParams_v2_params{exec, node, parameters},
              [] { return CUDA_SUCCESS; });
}
CUresult cuGraphInstantiateWithFlags(CUgraphExec* exec, CUgraph graph, unsigned long long) {
  *exec = destroyed_exec != nullptr ? std::exchange(destroyed_exec, nullptr) : kept(new CUgraphExec_st);
  for (const auto& node : graph->nodes) {
    (*exec)->nodes.push_back(std::make_unique<CUgraphNode_st>(CUgraphNode_st{++nodes, node->function}));
    node_event(CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED, (*exec)->nodes.back().get(), node.get(), *exec);
  }
  return CUDA_SUCCESS;
}
CUresult cuGraphExecDestroy(CUgraphExec exec) {
  for (auto& node : exec->nodes) {
    node_event(CUPTI_CBID_RESOURCE_GRAPHNODE_DESTROY_STARTING, node.get(), nullptr, exec);
    exec->destroyed.push_back(std::move(node));
  }
  exec->nodes.clear();
  destroyed_exec = exec;
  return CUDA_SUCCESS;
}
CUresult cuGraphLaunch(CUgraphExec exec, CUstream stream) {
  return call("cuGraphLaunch", cuGraphLaunch_params{exec, stream}, [&] {
    for (const auto& node : exec->nodes) emit_kernel(node->function, stream, node->id, 1);
    return CUDA_SUCCESS;
  });
}
}
