// A call of an NVIDIA library, with the operands and operations of the kernels that the library would launch.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "tracer/dry/device/dry_device.hpp"

namespace tidepool::dry {

enum class Access : unsigned char { kTouch, kRead, kWrite, kReadWrite };

/// A pointer that a call uses. A pointer that is in no live buffer of the device is ignored.
struct Operand {
  const void* pointer = nullptr;
  Access access = Access::kTouch;
};

/// One call of a library function, which is recorded as one kernel.
struct LibraryCall {
  std::string_view name;  ///< of the function, without the version at its end: cublasSgemm
  std::vector<Operand> operands;
  double flops = 0;           ///< a multiplication and an addition counted as two; 0: not known
  bool tensor_cores = false;  ///< the products are of 16-bit numbers
};

/// Submits the call to the stream, a cudaStream_t.
void call_library(void* stream, const LibraryCall& call);

/// Whether a floating-point factor on the host, of `bytes` bytes, is zero of either sign.
bool is_zero(const void* factor, std::size_t bytes);

}  // namespace tidepool::dry
