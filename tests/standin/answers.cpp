// Version of the stand-in for a driver, and the texts of its failures.
#include "tests/standin/answers.hpp"

namespace tidepool::cuda {

extern "C" {

Status cuDriverGetVersion(int* version) {
  *version = 13000;
  return kSuccess;
}
Status cuGetErrorName(Status status, const char** name) {
  *name = status == kErrorOutOfMemory ? "CUDA_ERROR_OUT_OF_MEMORY"
          : status == kLaunchFailed   ? "CUDA_ERROR_LAUNCH_FAILED"
          : status == kUnjoined       ? "CUDA_ERROR_STREAM_CAPTURE_UNJOINED"
                                      : nullptr;
  return kSuccess;
}
Status cuGetErrorString(Status status, const char** text) {
  *text = status == kErrorOutOfMemory ? "out of memory" : "unspecified launch failure";
  return kSuccess;
}

}  // extern "C"

}  // namespace tidepool::cuda
