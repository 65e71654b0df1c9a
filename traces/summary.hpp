// Summary of a trace in numbers.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "traces/trace.hpp"

namespace tidepool {

struct Summary {
  std::size_t buffers = 0, versions = 0, views = 0, ops = 0, uses = 0, steps = 0;
  std::size_t kernels = 0, copies = 0, random_ops = 0;
  std::size_t streams = 0, devices = 0;
  std::size_t iterations = 0;  ///< complete ones that the trace marks; 1 if it marks none
  Bytes ideal_peak;
  Nanos duration;                         ///< sum of the ops' durations
  Nanos span;                             ///< from the first start to the last end, with the host's time in between; 0
                                          ///< where some op has no start
  std::array<Bytes, 7> bytes_of_kind{};   ///< sum of the sizes of all buffers of a kind, by BufferKind
  std::array<std::size_t, 6> evidence{};  ///< uses by Evidence

  /// Number of buffers, versions, ops, uses and steps. Reading speeds are given in records per second.
  std::size_t records() const { return buffers + versions + ops + uses + steps; }
};

/// What a user should know about the times of the ops: that they are those of the CPU that recorded them, or that a
/// model estimated them, and how well. Empty if there is nothing to say.
std::string caveat_of_times(const Trace& trace);

/// How far a step that a model estimated is off, in the mean, as in "10 %"; empty if no such model gave the times.
std::string error_of_times(const Trace& trace);

/// The time in which a host issues an op, of which the trace has none: about 40 us for an operator of PyTorch (44 in
/// vTrain's smallest steps on A100s, 25 to 60 in dry runs of ResNet-50 and GPT-2). Ops that were issued together, as
/// those of a CUDA graph are, share it. 0 unless a model estimated the times of the ops.
Nanos issue_time(const Trace& trace);

Summary summarize(const Trace& trace);

/// What a user should know about a trace: what it lacks or lost, as in "2 frees of memory whose allocation was not
/// seen", and whether its op times are a CPU's. Empty if there is nothing to say.
std::vector<std::string> warnings(const Trace& trace);

}  // namespace tidepool
