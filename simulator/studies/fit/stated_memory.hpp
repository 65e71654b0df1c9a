// The memory that the allocator of a recorded job stated itself, in the metadata of the job's trace.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "traces/trace.hpp"

namespace tidepool {

/// A dry run has PyTorch's own allocator, and stores what it says of the whole job, also of parts that the trace leaves
/// out. Bytes are 0 if nothing is stated.
struct StatedMemory {
  Bytes allocated;       ///< most bytes of tensors at once
  Bytes reserved;        ///< most bytes that the allocator reserved; of one without a cache: most bytes of the device
  Bytes held;            ///< most bytes of segments that held tensors
  Bytes pinned;          ///< most bytes of the host that were pinned
  Bytes device_total;    ///< memory of the device on which the job ran; of a job with a share of it: what it was told
  Bytes told;            ///< the memory that the job was told of
  Bytes failed_request;  ///< a request that failed, and the tensors that were alive then
  Bytes failed_allocated;
  std::int64_t failed_requests = 0;
  bool asked_memory = false;  ///< it asked how much memory there is, and may choose its sizes by that
  bool replayable = true;     ///< its allocator is one that is modelled
  bool captured = false;      ///< CUDA graphs had pools of their own
  bool gave_back = false;     ///< segments were freed, as by torch.cuda.empty_cache(): no trace shows when
  double fraction = 1;        ///< the share of the device's memory that the job may reserve
  /// The job failed, and a request in this process had failed or, if the allocator states none, the reason of the
  /// failure says that memory ran out.
  bool ran_out = false;
  std::string settings;              ///< PYTORCH_ALLOC_CONF; "" for the defaults
  std::vector<std::string> assumed;  ///< what was assumed and may be otherwise on a device: sizes, tuning
};

StatedMemory stated_memory(const Trace& trace);

/// "the job's tensors take 5.1 GiB at most, outside of this trace, whose own peak is 640 MiB"; "" if nothing is stated,
/// or no more than 1 % above the trace's own peak.
std::string outside_text(const Trace& trace);

/// The options of the pool `pytorch` or `pytorch-expandable` that settings ask for, by option. None if the settings ask
/// for an allocator that is not modelled, such as backend:cudaMallocAsync.
struct AllocatorOptions {
  std::string pool;
  std::map<std::string, std::string> values;
};
std::optional<AllocatorOptions> allocator_options(const std::string& settings);

}  // namespace tidepool
