// The largest batch that fits, found by a few trials.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "traces/quantity.hpp"

namespace tidepool {

/// A batch size that was tried.
struct BatchTrial {
  std::int64_t batch = 0;
  bool fits = false;
  Bytes predicted;
};

struct LargestBatch {
  std::optional<std::int64_t> batch;  ///< none: not even a batch of 1 fits
  std::vector<BatchTrial> trials;     ///< in the order in which they were made
};

/// Looks for the largest batch size in [1, most] that fits, taking it that all smaller ones do. Memory grows with the
/// batch almost in proportion, so that each next trial is where the line through two of those before meets `capacity`.
/// The answer is proved by trials: it fits, and one more does not, unless it is `most`.
/// @param attempt  records the job with a batch size
LargestBatch largest_batch(const std::function<BatchTrial(std::int64_t)>& attempt, Bytes capacity, std::int64_t most);

}  // namespace tidepool
