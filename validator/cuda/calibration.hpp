// Measurements on a GPU for a machine file.
#pragma once

#include "validator/cuda/device.hpp"
#include "validator/host/calibration.hpp"

namespace tidepool::cuda {

/// Copies by size and direction and both ways at once, what launching, submitting, cudaMalloc, cudaFree, pinning and
/// mapping pages cost, what copies cost a kernel that needs all of the memory's rate, and rates of memory and
/// arithmetic. Takes well under two minutes. Where pages cannot be mapped, the machine's source says what is assumed.
/// @throws Error  if the device fails, or does not answer for a minute
Calibration calibrate(const Gpu& gpu, const CalibrationOptions& options);

}  // namespace tidepool::cuda
