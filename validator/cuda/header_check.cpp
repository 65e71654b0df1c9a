// driver.hpp speaks of NVIDIA's driver in its own words, so that it needs no CUDA toolkit; where there is one, they are
// compared with NVIDIA's.
#if __has_include(<cuda.h>)
#include <cuda.h>

#include "validator/cuda/driver.hpp"

namespace tidepool::cuda {

static_assert(sizeof(Address) == sizeof(CUdeviceptr) && sizeof(Device) == sizeof(CUdevice));
static_assert(sizeof(Status) == sizeof(CUresult) && sizeof(Stream) == sizeof(CUstream));
static_assert(kSuccess == CUDA_SUCCESS && kErrorOutOfMemory == CUDA_ERROR_OUT_OF_MEMORY);
static_assert(kErrorNotReady == CUDA_ERROR_NOT_READY);
static_assert(kStreamNonBlocking == CU_STREAM_NON_BLOCKING && kEventNoTiming == CU_EVENT_DISABLE_TIMING);
static_assert(kEventRecordExternal == CU_EVENT_RECORD_EXTERNAL && kCaptureRelaxed == CU_STREAM_CAPTURE_MODE_RELAXED);
static_assert(kHostPortable == CU_MEMHOSTALLOC_PORTABLE && kHostDeviceMap == CU_MEMHOSTALLOC_DEVICEMAP);
static_assert(kAttributeProcessors == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
static_assert(kAttributeMajor == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
static_assert(kAttributeMinor == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);

}  // namespace tidepool::cuda
#endif
