// A check of driver.hpp against NVIDIA's headers, compiled where a CUDA toolkit is installed. driver.hpp declares the
// driver's types and functions itself, so that it needs no toolkit.
#if __has_include(<cuda.h>)
#include <cuda.h>

#include <cstddef>
#include <type_traits>

#include "validator/cuda/driver.hpp"

namespace tidepool::cuda {
namespace {

/// Whether parameters of both types are passed in the same way: they have the same size, and both or neither are
/// pointers.
template <class Theirs, class Ours>
inline constexpr bool kSamePassing =
    sizeof(Theirs) == sizeof(Ours) && std::is_pointer_v<Theirs> == std::is_pointer_v<Ours>;

/// Whether two functions have the same number of parameters, and pass each of them in the same way.
template <class Theirs, class Ours>
struct SameShape : std::false_type {};
template <class... Theirs, class... Ours>
requires(sizeof...(Theirs) == sizeof...(Ours)) struct SameShape<CUresult (*)(Theirs...), const Call<Ours...>>
    : std::bool_constant<(kSamePassing<Theirs, Ours> && ...)> {
};

template <class Theirs, class Ours>
inline constexpr bool kSame = SameShape<Theirs, Ours>::value;

}  // namespace

static_assert(kSame<decltype(&cuInit), decltype(Driver::init)>);
static_assert(kSame<decltype(&cuDriverGetVersion), decltype(Driver::version)>);
static_assert(kSame<decltype(&cuGetErrorName), decltype(Driver::error_name)>);
static_assert(kSame<decltype(&cuGetErrorString), decltype(Driver::error_string)>);
static_assert(kSame<decltype(&cuDeviceGetCount), decltype(Driver::device_count)>);
static_assert(kSame<decltype(&cuDeviceGet), decltype(Driver::device_get)>);
static_assert(kSame<decltype(&cuDeviceGetName), decltype(Driver::device_name)>);
static_assert(kSame<decltype(&cuDeviceGetAttribute), decltype(Driver::device_attribute)>);
static_assert(kSame<decltype(&cuDevicePrimaryCtxRetain), decltype(Driver::context_retain)>);
static_assert(kSame<decltype(&cuDevicePrimaryCtxRelease), decltype(Driver::context_release)>);
static_assert(kSame<decltype(&cuCtxSetCurrent), decltype(Driver::context_set)>);
static_assert(kSame<decltype(&cuMemGetInfo), decltype(Driver::memory_info)>);
static_assert(kSame<decltype(&cuMemAlloc), decltype(Driver::allocate)>);
static_assert(kSame<decltype(&cuMemFree), decltype(Driver::free)>);
static_assert(kSame<decltype(&cuMemAddressReserve), decltype(Driver::address_reserve)>);
static_assert(kSame<decltype(&cuMemAddressFree), decltype(Driver::address_free)>);
static_assert(kSame<decltype(&cuMemCreate), decltype(Driver::memory_create)>);
static_assert(kSame<decltype(&cuMemRelease), decltype(Driver::memory_release)>);
static_assert(kSame<decltype(&cuMemMap), decltype(Driver::memory_map)>);
static_assert(kSame<decltype(&cuMemUnmap), decltype(Driver::memory_unmap)>);
static_assert(kSame<decltype(&cuMemSetAccess), decltype(Driver::memory_access)>);
static_assert(kSame<decltype(&cuMemHostAlloc), decltype(Driver::host_allocate)>);
static_assert(kSame<decltype(&cuMemFreeHost), decltype(Driver::host_free)>);
static_assert(kSame<decltype(&cuMemcpyHtoD), decltype(Driver::copy_in_now)>);
static_assert(kSame<decltype(&cuMemcpyDtoH), decltype(Driver::copy_out_now)>);
static_assert(kSame<decltype(&cuMemcpyHtoDAsync), decltype(Driver::copy_in)>);
static_assert(kSame<decltype(&cuMemcpyDtoHAsync), decltype(Driver::copy_out)>);
static_assert(kSame<decltype(&cuMemcpyDtoDAsync), decltype(Driver::copy_within)>);
static_assert(kSame<decltype(&cuModuleLoadData), decltype(Driver::module_load)>);
static_assert(kSame<decltype(&cuModuleUnload), decltype(Driver::module_unload)>);
static_assert(kSame<decltype(&cuModuleGetFunction), decltype(Driver::module_function)>);
static_assert(kSame<decltype(&cuLaunchKernel), decltype(Driver::launch)>);
static_assert(kSame<decltype(&cuStreamCreate), decltype(Driver::stream_create)>);
static_assert(kSame<decltype(&cuStreamDestroy), decltype(Driver::stream_destroy)>);
static_assert(kSame<decltype(&cuStreamQuery), decltype(Driver::stream_query)>);
static_assert(kSame<decltype(&cuStreamWaitEvent), decltype(Driver::stream_wait)>);
static_assert(kSame<decltype(&cuEventCreate), decltype(Driver::event_create)>);
static_assert(kSame<decltype(&cuEventDestroy), decltype(Driver::event_destroy)>);
static_assert(kSame<decltype(&cuEventRecord), decltype(Driver::event_record)>);
static_assert(kSame<decltype(&cuEventRecordWithFlags), decltype(Driver::event_record_with)>);
static_assert(kSame<decltype(&cuEventQuery), decltype(Driver::event_query)>);
static_assert(kSame<decltype(&cuEventElapsedTime), decltype(Driver::event_elapsed)>);
static_assert(kSame<decltype(&cuStreamBeginCapture), decltype(Driver::capture_begin)>);
static_assert(kSame<decltype(&cuStreamEndCapture), decltype(Driver::capture_end)>);
static_assert(kSame<decltype(&cuGraphInstantiateWithFlags), decltype(Driver::graph_instantiate)>);
static_assert(kSame<decltype(&cuGraphUpload), decltype(Driver::graph_upload)>);
static_assert(kSame<decltype(&cuGraphLaunch), decltype(Driver::graph_launch)>);
static_assert(kSame<decltype(&cuGraphDestroy), decltype(Driver::graph_destroy)>);
static_assert(kSame<decltype(&cuGraphExecDestroy), decltype(Driver::graph_exec_destroy)>);

static_assert(sizeof(Address) == sizeof(CUdeviceptr) && sizeof(Device) == sizeof(CUdevice));
static_assert(sizeof(Status) == sizeof(CUresult) && sizeof(Stream) == sizeof(CUstream));
static_assert(kSuccess == CUDA_SUCCESS && kErrorOutOfMemory == CUDA_ERROR_OUT_OF_MEMORY);
static_assert(kErrorNotReady == CUDA_ERROR_NOT_READY);
static_assert(kStreamNonBlocking == CU_STREAM_NON_BLOCKING && kEventNoTiming == CU_EVENT_DISABLE_TIMING);
static_assert(kEventRecordExternal == CU_EVENT_RECORD_EXTERNAL && kCaptureRelaxed == CU_STREAM_CAPTURE_MODE_RELAXED);
static_assert(kHostPortable == CU_MEMHOSTALLOC_PORTABLE && kHostDeviceMap == CU_MEMHOSTALLOC_DEVICEMAP);
static_assert(kAttributeProcessors == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
static_assert(kAttributeMapsMemory == CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED);
static_assert(kAttributeMajor == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
static_assert(kAttributeMinor == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);

static_assert(sizeof(PhysicalMemory) == sizeof(CUmemGenericAllocationHandle) &&
              kOnDevice == CU_MEM_LOCATION_TYPE_DEVICE);
static_assert(sizeof(MemoryLocation) == sizeof(CUmemLocation) && kPinned == CU_MEM_ALLOCATION_TYPE_PINNED);
static_assert(offsetof(MemoryLocation, id) == offsetof(CUmemLocation, id));
static_assert(sizeof(MemoryProperties) == sizeof(CUmemAllocationProp));
static_assert(offsetof(MemoryProperties, location) == offsetof(CUmemAllocationProp, location));
static_assert(offsetof(MemoryProperties, flags) == offsetof(CUmemAllocationProp, allocFlags));
static_assert(sizeof(MemoryAccess) == sizeof(CUmemAccessDesc) && kReadWrite == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
static_assert(offsetof(MemoryAccess, flags) == offsetof(CUmemAccessDesc, flags));

}  // namespace tidepool::cuda
#endif
