// Stand-in for libcuda.so.1: see fake.hpp.
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "tests/fake_cuda/cuda_state.hpp"
#include "tests/fake_cuda/mapped.hpp"

using namespace fake;

extern "C" {

void fake_attach(const fake::Tool* attached) { tool = attached; }

CUfunction fake_function(const char* name, const std::size_t* offsets, const std::size_t* sizes, std::size_t count) {
  CUfunction function = nullptr;
  {
    const std::lock_guard lock{mutex};
    function = std::exchange(unloaded_function, nullptr);
  }
  if (function == nullptr) function = new CUfunc_st;
  *function = {name, {}};
  for (std::size_t i = 0; i < count; ++i) function->parameters.emplace_back(offsets[i], sizes[i]);
  return Handles<CUfunc_st>::add(function);
}

void fake_unload(CUfunction function) {
  resource(CUPTI_CBID_RESOURCE_MODULE_UNLOAD_STARTING, nullptr, nullptr);
  if (!Handles<CUfunc_st>::remove(function)) return;
  const std::lock_guard lock{mutex};
  unloaded_function = function;
}

bool fake_stream_id(CUstream stream, std::uint32_t* id) {
  if (!Handles<CUstream_st>::know(&stream_of(stream))) return false;
  *id = stream_of(stream).id;
  return true;
}

CUdeviceptr fake_hidden_alloc(std::size_t bytes) {
  const std::lock_guard lock{mutex};
  return place(bytes);
}

void fake_runtime(const char* name, bool enter) {
  if (enter) runtime_calls.push_back({++correlations, 0});
  RuntimeCall& call = runtime_calls.back();
  tell(CUPTI_CB_DOMAIN_RUNTIME_API, enter ? CUPTI_API_ENTER : CUPTI_API_EXIT, name, nullptr, nullptr, &call.storage,
       call.correlation);
  if (!enter) runtime_calls.pop_back();
}

void fake_delay(unsigned milliseconds) { delay_ms = milliseconds; }

bool fake_graph_node_id(CUgraphNode node, std::uint64_t* id) {
  if (!Handles<CUgraphNode_st>::know(node)) return false;
  *id = node->id;
  return true;
}

CUresult cuInit(unsigned flags) {
  if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
  static std::once_flag once;
  std::call_once(once, [] {
    const char* const path = getenv("CUDA_INJECTION64_PATH");
    void* const library = path == nullptr ? nullptr : dlopen(path, RTLD_NOW);
    if (path != nullptr && library == nullptr) std::fprintf(stderr, "fake: %s\n", dlerror());
    initialized = getpid();
    if (library == nullptr) return;
    if (const auto initialize = reinterpret_cast<int (*)()>(dlsym(library, "InitializeInjection"))) initialize();
  });
  return initialized == getpid() ? CUDA_SUCCESS : CUDA_ERROR_NOT_INITIALIZED;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext* made, CUdevice device) {
  if (initialized != getpid()) return CUDA_ERROR_NOT_INITIALIZED;
  if (device != 0) return CUDA_ERROR_INVALID_DEVICE;
  ++retained;
  *made = &context;
  return CUDA_SUCCESS;
}
CUresult cuDevicePrimaryCtxRelease_v2(CUdevice) {
  if (retained == 0) return CUDA_ERROR_INVALID_CONTEXT;
  --retained;
  return CUDA_SUCCESS;
}
CUresult cuCtxSetCurrent(CUcontext wanted) {
  if (initialized != getpid()) return CUDA_ERROR_NOT_INITIALIZED;
  if (wanted != nullptr && (wanted != &context || retained == 0)) return CUDA_ERROR_INVALID_CONTEXT;
  current_context = wanted;
  return CUDA_SUCCESS;
}

CUresult cuDriverGetVersion(int* version) {
  *version = 12040;
  return CUDA_SUCCESS;
}

CUresult cuFuncGetName(const char** name, CUfunction function) {
  if (refusal_of_kernels() != CUDA_SUCCESS) return CUDA_ERROR_INVALID_HANDLE;
  if (const CUresult result = ready(function); result != CUDA_SUCCESS) return result;
  *name = function->name.c_str();
  return CUDA_SUCCESS;
}

CUresult cuFuncGetParamInfo(CUfunction function, std::size_t index, std::size_t* offset, std::size_t* size) {
  static const bool unable = !fake::fault("no-layout").empty();
  if (unable) return CUDA_ERROR_NOT_SUPPORTED;
  if (refusal_of_kernels() != CUDA_SUCCESS) return refusal_of_kernels();
  if (const CUresult result = ready(function); result != CUDA_SUCCESS) return result;
  if (index >= function->parameters.size()) return CUDA_ERROR_INVALID_VALUE;
  std::tie(*offset, *size) = function->parameters[index];
  return CUDA_SUCCESS;
}

CUresult cuKernelGetName(const char** name, CUkernel kernel) {
  const auto function = reinterpret_cast<CUfunction>(kernel);
  if (refusal_of_kernels() == CUDA_SUCCESS) return CUDA_ERROR_INVALID_HANDLE;
  if (const CUresult result = ready(function); result != CUDA_SUCCESS) return result;
  *name = function->name.c_str();
  return CUDA_SUCCESS;
}

CUresult cuKernelGetParamInfo(CUkernel kernel, std::size_t index, std::size_t* offset, std::size_t* size) {
  const auto function = reinterpret_cast<CUfunction>(kernel);
  if (refusal_of_kernels() == CUDA_SUCCESS) return CUDA_ERROR_INVALID_HANDLE;
  if (const CUresult result = ready(function); result != CUDA_SUCCESS) return result;
  const auto& parameters = function->parameters;
  if (index >= parameters.size()) return CUDA_ERROR_INVALID_VALUE;
  std::tie(*offset, *size) = parameters[index];
  return CUDA_SUCCESS;
}

CUresult cuPointerGetAttributes(unsigned count, CUpointer_attribute* attributes, void** values, CUdeviceptr pointer) {
  if (const CUresult result = ready(); result != CUDA_SUCCESS) return result;
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
  return checked([&] {
    *stream = Handles<CUstream_st>::add(new CUstream_st{++streams, false, {}});
    resource(CUPTI_CBID_RESOURCE_STREAM_CREATED, *stream, nullptr);
    return CUDA_SUCCESS;
  });
}
CUresult cuStreamDestroy_v2(CUstream stream) {
  return checked(
      [&] {
        if (stream->capturing) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
        resource(CUPTI_CBID_RESOURCE_STREAM_DESTROY_STARTING, stream, nullptr);
        Handles<CUstream_st>::remove(stream);
        return CUDA_SUCCESS;
      },
      stream);
}

CUresult cuEventCreate(CUevent* event, unsigned) {
  return checked([&] {
    *event = Handles<CUevent_st>::add(new CUevent_st{++events, 0});
    return CUDA_SUCCESS;
  });
}
CUresult cuEventDestroy_v2(CUevent event) {
  return checked(
      [&] {
        Handles<CUevent_st>::remove(event);
        return CUDA_SUCCESS;
      },
      event);
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
  return call("cuMemAddressReserve", cuMemAddressReserve_params{address, bytes, alignment, wish, flags},
              [&] { return mapped().reserve(*address, bytes); });
}
CUresult cuMemAddressFree(CUdeviceptr address, std::size_t bytes) {
  return call("cuMemAddressFree", cuMemAddressFree_params{address, bytes},
              [&] { return mapped().free(address, bytes); });
}
CUresult cuMemCreate(CUmemGenericAllocationHandle* handle, std::size_t bytes, const CUmemAllocationProp* properties,
                     unsigned long long flags) {
  return call("cuMemCreate", cuMemCreate_params{handle, bytes, properties, flags},
              [&] { return mapped().create(*handle, bytes); });
}
CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
  return call("cuMemRelease", cuMemRelease_params{handle}, [&] { return mapped().release(handle); });
}
CUresult cuMemMap(CUdeviceptr address, std::size_t bytes, std::size_t offset, CUmemGenericAllocationHandle handle,
                  unsigned long long flags) {
  return call("cuMemMap", cuMemMap_params{address, bytes, offset, handle, flags},
              [&] { return mapped().map(address, bytes, offset, handle); });
}
CUresult cuMemUnmap(CUdeviceptr address, std::size_t bytes) {
  return call("cuMemUnmap", cuMemUnmap_params{address, bytes}, [&] { return mapped().unmap(address, bytes); });
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
  return call("cuMemcpyDtoDAsync_v2", cuMemcpyDtoDAsync_v2_params{to, from, bytes, stream}, [&] {
    return copy({to, from}, bytes, stream, CUPTI_ACTIVITY_MEMCPY_KIND_DTOD);
  });
}
CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void* from, std::size_t bytes, CUstream stream) {
  return call("cuMemcpyHtoDAsync_v2", cuMemcpyHtoDAsync_v2_params{to, from, bytes, stream},
              [&] { return copy({to}, bytes, stream, CUPTI_ACTIVITY_MEMCPY_KIND_HTOD); });
}
CUresult cuMemcpyDtoHAsync_v2(void* to, CUdeviceptr from, std::size_t bytes, CUstream stream) {
  return call("cuMemcpyDtoHAsync_v2", cuMemcpyDtoHAsync_v2_params{to, from, bytes, stream},
              [&] { return copy({from}, bytes, stream, CUPTI_ACTIVITY_MEMCPY_KIND_DTOH); });
}
CUresult cuMemsetD32Async(CUdeviceptr to, unsigned value, std::size_t count, CUstream stream) {
  return call("cuMemsetD32Async", cuMemsetD32Async_params{to, value, count, stream}, [&] {
    if (const CUresult result = ready(&stream_of(stream)); result != CUDA_SUCCESS) return result;
    if (!is_allocated(to, count * 4)) return CUDA_ERROR_INVALID_VALUE;
    auto record = transfer<CUpti_ActivityMemset4>(CUPTI_ACTIVITY_KIND_MEMSET, count * 4, stream);
    record.value = value;
    emit(record);
    return CUDA_SUCCESS;
  });
}

CUresult cuEventRecord(CUevent event, CUstream stream) {
  return call("cuEventRecord", cuEventRecord_params{event, stream}, [&] {
    if (const CUresult result = ready(event, &stream_of(stream)); result != CUDA_SUCCESS) return result;
    event->sync_id = ++sync_ids;
    fake::EventRecord record{};
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
    if (const CUresult result = ready(event, &stream_of(stream)); result != CUDA_SUCCESS) return result;
    fake::SynchronizationRecord record{};
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
  return call("cuCtxSynchronize", 0, [] {
    if (stream_is_capturing) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    while (now() < work_ends) std::this_thread::sleep_for(std::chrono::microseconds{100});
    return CUDA_SUCCESS;
  });
}

CUresult cuTensorMapEncodeTiled(CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank, void* address,
                                const cuuint64_t* extents, const cuuint64_t* strides, const cuuint32_t* box,
                                const cuuint32_t* steps, CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                                CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill) {
  return call("cuTensorMapEncodeTiled",
              cuTensorMapEncodeTiled_params{map, type, rank, address, extents, strides, box, steps, interleave, swizzle,
                                            promotion, fill},
              [&] {
                // The map is opaque: it contains the address, but not as a word that a scan would find.
                std::memset(map, 0x5a, sizeof *map);
                const auto hidden = ~reinterpret_cast<std::uint64_t>(address);
                std::memcpy(reinterpret_cast<char*>(map) + 3, &hidden, sizeof hidden);
                return CUDA_SUCCESS;
              });
}

CUresult cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode) {
  return checked(
      [&] {
        if (stream_is_capturing.exchange(true)) return CUDA_ERROR_ILLEGAL_STATE;
        capture = Handles<CUgraph_st>::add(new CUgraph_st);
        stream->capturing = true;
        return CUDA_SUCCESS;
      },
      stream);
}
CUresult cuStreamEndCapture(CUstream stream, CUgraph* graph) {
  return checked(
      [&] {
        if (!stream->capturing) return CUDA_ERROR_ILLEGAL_STATE;
        stream->capturing = stream_is_capturing = false;
        *graph = capture;
        return CUDA_SUCCESS;
      },
      stream);
}
CUresult cuGraphCreate(CUgraph* graph, unsigned) {
  return checked([&] {
    *graph = Handles<CUgraph_st>::add(new CUgraph_st);
    return CUDA_SUCCESS;
  });
}
CUresult cuGraphAddKernelNode_v2(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies, std::size_t count,
                                 const CUDA_KERNEL_NODE_PARAMS* parameters) {
  return call("cuGraphAddKernelNode", cuGraphAddKernelNode_v2_params{node, graph, dependencies, count, parameters},
              [&] {
                return checked(
                    [&] {
                      *node = add_node(graph, parameters->func);
                      return CUDA_SUCCESS;
                    },
                    graph, parameters->func);
              });
}
CUresult cuGraphExecKernelNodeSetParams_v2(CUgraphExec exec, CUgraphNode node,
                                           const CUDA_KERNEL_NODE_PARAMS* parameters) {
  return call("cuGraphExecKernelNodeSetParams_v2", cuGraphExecKernelNodeSetParams_v2_params{exec, node, parameters},
              [&] { return ready(exec, node, parameters->func); });
}
CUresult cuGraphNodeSetParams(CUgraphNode node, CUgraphNodeParams* parameters) {
  return call("cuGraphNodeSetParams", cuGraphNodeSetParams_params{node, parameters},
              [&] { return ready(node, parameters->kernel.func); });
}
CUresult cuGraphExecNodeSetParams(CUgraphExec exec, CUgraphNode node, CUgraphNodeParams* parameters) {
  return call("cuGraphExecNodeSetParams", cuGraphExecNodeSetParams_params{exec, node, parameters},
              [&] { return ready(exec, node, parameters->kernel.func); });
}
CUresult cuGraphInstantiateWithFlags(CUgraphExec* exec, CUgraph graph, unsigned long long) {
  return checked(
      [&] {
        *exec = destroyed_exec != nullptr ? std::exchange(destroyed_exec, nullptr) : new CUgraphExec_st;
        Handles<CUgraphExec_st>::add(*exec);
        for (const auto& node : graph->nodes) {
          (*exec)->nodes.push_back(std::make_unique<CUgraphNode_st>(CUgraphNode_st{++nodes, node->function}));
          CUgraphNode clone = Handles<CUgraphNode_st>::add((*exec)->nodes.back().get());
          node_event(CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED, clone, node.get(), *exec);
        }
        return CUDA_SUCCESS;
      },
      graph);
}
CUresult cuGraphExecDestroy(CUgraphExec exec) {
  return checked(
      [&] {
        for (auto& node : exec->nodes) {
          node_event(CUPTI_CBID_RESOURCE_GRAPHNODE_DESTROY_STARTING, node.get(), nullptr, exec);
          Handles<CUgraphNode_st>::remove(node.get());
          exec->destroyed.push_back(std::move(node));
        }
        exec->nodes.clear();
        Handles<CUgraphExec_st>::remove(exec);
        destroyed_exec = exec;
        return CUDA_SUCCESS;
      },
      exec);
}
CUresult cuGraphLaunch(CUgraphExec exec, CUstream stream) {
  return call("cuGraphLaunch", cuGraphLaunch_params{exec, stream}, [&] {
    return checked(
        [&] {
          for (const auto& node : exec->nodes) emit_kernel(node->function, stream, node->id, 1);
          return CUDA_SUCCESS;
        },
        exec, &stream_of(stream));
  });
}
}
