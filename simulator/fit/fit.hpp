// The memory of a device that a process takes, predicted from a trace: does the job fit?
#pragma once

#include <string>
#include <vector>

#include "simulator/explain/holders.hpp"
#include "simulator/explain/instant.hpp"
#include "simulator/fit/device_budget.hpp"
#include "simulator/run.hpp"
#include "traces/trace.hpp"

namespace tidepool {

/// What PyTorch's allocator reserves under one setting, and whether that fits.
struct AllocatorFit {
  std::string pool;     ///< pytorch or pytorch-expandable
  Bytes reserved;       ///< most at once; where it does not fit, what it would be without limit
  Bytes unlimited;      ///< the same on a device without limit
  bool fits = false;    ///< together with context and workspaces
  std::string message;  ///< the request that fails, where it does not
};

/// A verdict. Predicted bytes are reserved + context + workspace.
struct Fit {
  const DeviceBudget* device = nullptr;
  bool fits = false;
  Bytes predicted, low, high;  ///< low and high: with the least and the largest context
  Bytes reserved, workspace;
  bool workspaces_recorded = false;  ///< they are buffers of the trace, so `workspace` is 0
  AllocatorFit allocator;            ///< as the job is set
  AllocatorFit other;                ///< with expandable segments, or without
  Instant peak;
  std::vector<Holder> holders;     ///< at the peak
  std::vector<std::string> notes;  ///< what the prediction leaves out, a sentence each
};

/// Replays the allocator of a trace: what it reserves at most, and whether it can do with what the device has left
/// beside context and workspaces, where it gives back what it caches. A trace of one step that finds buffers from
/// before is repeated, until the cache is as it is while training goes on.
/// @param pool  the allocator's setting: pytorch or pytorch-expandable
/// @throws InputError  "the trace is of 2 devices; expected one, as `fit` judges one"
Fit predict_fit(const Trace& trace, const DeviceBudget& device, const std::string& pool);

}  // namespace tidepool
