// Common part of the cuDNN entry points. The real library keeps the descriptors, for which it needs no device;
// functions that take a handle are answered here, as far as PyTorch needs them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "tracer/dry/device/library_call.hpp"

namespace tidepool::dry {

struct CudnnHandle {
  void* stream = nullptr;
};

inline void* cudnn_stream(void* handle) { return static_cast<CudnnHandle*>(handle)->stream; }

/// A function of the real cuDNN library that needs no handle.
template <class Function>
Function* real_cudnn(const char* name) {
  return reinterpret_cast<Function*>(real_function("libcudnn.so", name));
}

/// Sizes and type (cudnnDataType_t) of a tensor or filter; no dimensions if the descriptor cannot be read.
struct Extents {
  static constexpr int kMost = 8;
  std::array<int, kMost> sizes{};
  int dimensions = 0, type = 0;

  bool sixteen_bits() const { return type == 2 || type == 9; }  // CUDNN_DATA_HALF, CUDNN_DATA_BFLOAT16
  bool doubles() const { return type == 1; }                    // CUDNN_DATA_DOUBLE
  /// The product of the sizes from dimension `from` on; 0 if there are no dimensions.
  double elements(int from = 0) const {
    double product = dimensions > 0 ? 1 : 0;
    for (int i = from; i < dimensions; ++i) product *= sizes[static_cast<std::size_t>(i)];
    return product;
  }
};
Extents tensor_extents(const void* descriptor);
Extents filter_extents(const void* descriptor);

/// The access to a result whose new values are added to beta times its old content: a write if beta is zero or
/// null, else a read and a write. beta is on the host: a double for tensors of doubles, else a float.
Access blended(const void* beta, const Extents& result);

}  // namespace tidepool::dry
