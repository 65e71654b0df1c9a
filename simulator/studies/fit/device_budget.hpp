// The memory of devices, and the part of it that a process uses besides its tensors.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "traces/base/quantity.hpp"

namespace tidepool {

/// Bytes of a process beside those of its allocator: the CUDA context with the kernels of the libraries. `low` holds
/// if kernels are loaded at their first launch (the default since CUDA 12.2), `high` if all kernels are loaded at the
/// start.
struct ContextRange {
  Bytes low, expected, high;
};

/// The memory of one device, in bytes.
struct DeviceBudget {
  std::string_view name;  ///< as for `record --dry --device`
  Bytes total;            ///< bytes that programs can have, as cudaMemGetInfo reports them
  ContextRange context;   ///< context of a PyTorch process without convolutions
  ContextRange cudnn;     ///< growth of the context at the first convolution, which loads cuDNN
  bool measured = false;  ///< both ranges are fitted to measurements of this device: tests/recording/fit_table.py
  Bytes workspace;        ///< PyTorch's workspaces for cuBLAS: one for the forward thread, one for the backward one
};

std::span<const DeviceBudget> device_budgets();
/// @throws InputError  naming the nearest device, and --capacity
const DeviceBudget& device_budget(std::string_view name);
/// "h100-80gb, h200, ...".
std::string device_budget_names();
/// "t4" or, with another size of memory than that device has, "t4 with 12 GiB".
std::string text_of(const DeviceBudget& device);
/// The options of `tidepool fit` that name a device: "--device t4", and "--capacity 12884901888B" in the other case.
std::string options_of(const DeviceBudget& device);

}  // namespace tidepool
