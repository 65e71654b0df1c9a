// Prediction of the device memory that a process takes, from a trace, and the verdict on whether the job fits.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "simulator/studies/fit/device_budget.hpp"
#include "simulator/studies/fit/stated_memory.hpp"
#include "traces/step/holders.hpp"
#include "traces/step/instant.hpp"
#include "traces/trace.hpp"

namespace tidepool {

/// The bytes that PyTorch's allocator reserves under one setting, and whether they fit.
struct AllocatorFit {
  std::string pool;   ///< pytorch or pytorch-expandable
  Bytes unlimited;    ///< most bytes reserved at once on a device without limit
  Bytes needs;        ///< to compare settings: bytes reserved here if both fit, else the least capacity without failure
  bool fits = false;  ///< the reserved bytes fit together with context and workspaces
};

/// The verdict on whether a job fits a device. Predicted bytes are reserved + context + workspace.
struct Fit {
  const DeviceBudget* device = nullptr;
  bool fits = false;
  bool certain = false;  ///< the verdict is the same at `low` and at `high`, and does not rest on `doubts`
  /// What a verdict "fits" rests on and nobody measured, such as "workspaces of cuDNN"; no upper limit of it is known.
  std::vector<std::string> doubts;
  /// What the allocator of the recorded job stated, and where `reserved` comes from: "stated by PyTorch's allocator",
  /// "a replay of the recorded requests", ...
  StatedMemory stated;
  std::string source;
  /// The memory of a device (as for `record --dry --capacity`) on which only another run of the job can tell whether it
  /// dies: the allocator would have to give back memory, in a way that the recording does not show.
  std::optional<Bytes> untried;
  bool unknown_beyond = false;  ///< the job ran out of memory, and what it needs beyond that is not known
  Bytes available;              ///< what the allocator may reserve: of the device's memory, or of the job's share of it
  Bytes predicted;
  std::optional<Bytes> worst;  ///< predicted if choices that were assumed are all the same
  Bytes margin;     ///< what is left of the device's memory, or of the job's share of it; negative: what is missing
  Bytes low, high;  ///< `predicted` with the least and the largest context and convolution_workspace (least: 0)
  Bytes reserved;   ///< most bytes at once; if the job does not fit, the least capacity without failure, to 2 MiB
  ContextRange context;              ///< includes cuDNN's kernels if the trace has convolutions
  Bytes workspace;                   ///< cuBLAS's workspaces, convolution_workspace and buffers of NCCL
  Bytes convolution_workspace;       ///< the largest estimate for a convolution; 0: no convolutions, or recorded
  bool workspaces_recorded = false;  ///< cuBLAS's workspaces are buffers of the trace, and not in `workspace`
  AllocatorFit allocator;            ///< with the job's own setting
  AllocatorFit other;                ///< with the other setting of expandable segments
  bool compared = true;              ///< the two settings can be compared: a replay gives what the job reserved
  Instant peak;
  std::vector<Holder> holders;     ///< at the peak
  std::vector<std::string> notes;  ///< facts that the prediction does not know, a sentence each
};

/// The reason why the recorded job failed, from the trace: "ValueError: no data"; "" if the job did not fail.
std::string failure_of(const Trace& trace);

/// Whether the recorder saw the job end well without a training step.
bool only_infers(const Trace& trace);

/// Whether a recording ends before a training step, so that it does not show the job's memory: it has no backward op
/// and no optimizer's op, although its ops have phases or its job failed. A job that ended well without a training step
/// infers.
bool lacks_training(const Trace& trace);

/// Whether a backward op or an optimizer's op is recorded.
bool has_training(const Trace& trace);

/// Replays the allocator of a trace. Compares the most bytes that it reserves with the bytes that the device has
/// besides context and workspaces. Near the limit, the allocator gives cached segments back. A trace of one step with
/// buffers from before the step is repeated, until the cache is as in later steps of training.
///
/// Bytes that the allocator of the job itself has stated are never replaced by smaller ones. Where the stated bytes do
/// not fit, the replay decides if it gives exactly the stated bytes of the whole job; else the job counts as one that
/// does not fit, and `untried` is set.
/// @param pool      the allocator's setting: pytorch or pytorch-expandable; "": the one that the trace states, or else
///                  pytorch. Nothing is certain then that another setting could change.
/// @param recorded  bytes that the allocator is known to have reserved under this setting; 0: those that the trace
///                  states
/// @param communicators  assumed bytes of the buffers of NCCL on the device; low is without them
/// @throws InputError  "the trace is of 2 devices; expected one, as `fit` judges one"
Fit predict_fit(const Trace& trace, const DeviceBudget& device, const std::string& pool, Bytes recorded = {},
                Bytes communicators = {});

/// The pool of PyTorch's settings, as in PYTORCH_ALLOC_CONF.
std::string pool_of(const std::string& settings);

/// Puts the outcome of another run of the job, with the memory of `untried`, in the place of a guess.
void settle(Fit& fit, bool died);

/// Adds what another run of the job takes in which choices that were assumed are all the same.
void widen(Fit& fit, const Fit& worst);

}  // namespace tidepool
