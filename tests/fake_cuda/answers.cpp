// Version of the fake of a driver, and the texts of its errors.
#include "tests/fake_cuda/world.hpp"

namespace tidepool::cuda {

extern "C" {

Status cuDriverGetVersion(int* version) {
  *version = 13000;
  return kSuccess;
}
Status cuGetErrorName(Status status, const char** name) {
  switch (status) {
    case kInvalid:
      *name = "CUDA_ERROR_INVALID_VALUE";
      break;
    case kErrorOutOfMemory:
      *name = "CUDA_ERROR_OUT_OF_MEMORY";
      break;
    case kInvalidContext:
      *name = "CUDA_ERROR_INVALID_CONTEXT";
      break;
    case kInvalidHandle:
      *name = "CUDA_ERROR_INVALID_HANDLE";
      break;
    case kIllegalAddress:
      *name = "CUDA_ERROR_ILLEGAL_ADDRESS";
      break;
    case kLaunchFailed:
      *name = "CUDA_ERROR_LAUNCH_FAILED";
      break;
    case kCaptureUnjoined:
      *name = "CUDA_ERROR_STREAM_CAPTURE_UNJOINED";
      break;
    default:
      *name = nullptr;
  }
  return kSuccess;
}
Status cuGetErrorString(Status status, const char** text) {
  *text = status == kErrorOutOfMemory ? "out of memory"
          : status == kLaunchFailed   ? "unspecified launch failure"
                                      : "refused by the fake";
  return kSuccess;
}

}  // extern "C"

}  // namespace tidepool::cuda
