// The compiled kernels of kernels.cu: in the program, or in lib/tidepool/kernels.fatbin of an installation whose
// program was built without nvcc.
#pragma once

#include <span>

namespace tidepool::cuda {

/// Whether the program or the installation has the compiled kernels.
bool has_kernels();

/// The module for the driver to load; empty without kernels.
std::span<const unsigned char> kernel_image();

}  // namespace tidepool::cuda
