// Measurements on a GPU for a machine file.
#pragma once

#include "validator/cuda/device.hpp"
#include "validator/host/calibration.hpp"

namespace tidepool::cuda {

/// Measures copies by size and direction, and both ways at once; the times of launching, submitting, cudaMalloc,
/// cudaFree, pinning and mapping pages; the slowdown by copies of a kernel that needs all of the memory's rate; and
/// rates of memory and arithmetic. Takes under two minutes. If pages cannot be mapped, the machine's source states what
/// is assumed.
/// @throws Error  if the device fails, or does not answer for a minute
Calibration calibrate(const Gpu& gpu, const CalibrationOptions& options);

}  // namespace tidepool::cuda
