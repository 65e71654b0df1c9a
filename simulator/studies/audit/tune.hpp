// Search for the settings of PyTorch's allocator that serve a recorded program best.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "simulator/result.hpp"
#include "traces/import/torch_snapshot.hpp"
#include "traces/trace.hpp"

namespace tidepool {

/// One combination of settings of the allocator.
struct AllocatorSetting {
  std::string pool;                            ///< pytorch or pytorch-expandable
  std::map<std::string, std::string> options;  ///< of the pool
  std::string conf;                            ///< the same options for PYTORCH_CUDA_ALLOC_CONF; "" for the defaults
  bool operator==(const AllocatorSetting&) const = default;
};

/// Every combination of a few values of expandable_segments, max_split_size_mb, roundup_power2_divisions,
/// large_segment_size_mb and, if wanted, garbage_collection_threshold; those with the fewest changes come first.
/// max_split_size and the threshold are tried with native segments only: they have no effect on expandable ones.
std::vector<AllocatorSetting> allocator_settings(bool with_threshold);

/// The result of a setting.
struct TunedSetting {
  AllocatorSetting setting;
  Outcome outcome = Outcome::kOk;  ///< out of memory: a request exceeded the capacity
  Bytes reserved;                  ///< most bytes reserved at once, up to a request that failed
  std::string message;             ///< the request that failed
};

/// Serves the lifetimes of `trace` under every setting, from an empty device on. Settings that fit come first, sorted
/// by reserved bytes; equal ones, and those that do not fit, keep their order.
std::vector<TunedSetting> tune(const Trace& trace, std::span<const AllocatorSetting> settings, Bytes capacity);

}  // namespace tidepool
