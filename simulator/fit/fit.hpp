// The memory of a device that a process takes, predicted from a trace: does the job fit?
#pragma once

#include <string>
#include <vector>

#include "simulator/explain/holders.hpp"
#include "simulator/explain/instant.hpp"
#include "simulator/fit/device_budget.hpp"
#include "traces/trace.hpp"

namespace tidepool {

/// What PyTorch's allocator reserves under one setting, and whether that fits.
struct AllocatorFit {
  std::string pool;  ///< pytorch or pytorch-expandable
  Bytes unlimited;   ///< most reserved at once on a device without limit
  Bytes needs;       ///< to compare settings by: most reserved here where both fit, else the least capacity that serves
  bool fits = false;  ///< together with context and workspaces
};

/// A verdict. Predicted bytes are reserved + context + workspace.
struct Fit {
  const DeviceBudget* device = nullptr;
  bool fits = false;
  bool certain = false;  ///< the verdict is the same for low and high
  Bytes predicted;
  Bytes low, high;  ///< with the least and the largest context; low also without convolution_workspace
  Bytes reserved;   ///< most at once; where it does not fit, the least capacity with which no request fails, to 2 MiB
  Bytes workspace;
  Bytes convolution_workspace;  ///< the largest, taken for a convolution and part of `reserved`; 0: none, or recorded
  bool workspaces_recorded = false;  ///< they are buffers of the trace, so `workspace` is 0
  AllocatorFit allocator;            ///< as the job is set
  AllocatorFit other;                ///< with expandable segments, or without
  Instant peak;
  std::vector<Holder> holders;     ///< at the peak
  std::vector<std::string> notes;  ///< what the prediction leaves out, a sentence each
};

/// Whether a backward or an optimizer's op is recorded.
bool has_training(const Trace& trace);

/// Replays the allocator of a trace: what it reserves at most, and whether it can do with what the device has left
/// beside context and workspaces, where it gives back what it caches. A trace of one step that finds buffers from
/// before is repeated, until the cache is as it is while training goes on.
/// @param pool      the allocator's setting: pytorch or pytorch-expandable
/// @param recorded  what the allocator is known to have reserved under this setting, in bytes; 0: not known
/// @throws InputError  "the trace is of 2 devices; expected one, as `fit` judges one"
Fit predict_fit(const Trace& trace, const DeviceBudget& device, const std::string& pool, Bytes recorded = {});

}  // namespace tidepool
