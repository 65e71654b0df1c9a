// The compiled kernels of kernels.cu, carried in the program.
#pragma once

#include <span>

namespace tidepool::cuda {

/// Whether the build had nvcc.
bool has_kernels();

/// What the driver loads as a module; without kernels nothing that it would accept.
std::span<const unsigned char> kernel_image();

}  // namespace tidepool::cuda
