// The largest batch size that fits, found with a few trials.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "traces/quantity.hpp"

namespace tidepool {

/// A batch size that was tried.
struct BatchTrial {
  std::int64_t batch = 0;
  bool fits = false;
  Bytes predicted = {};
  std::string failed = {};  ///< why the trial gives no result, as in "the job failed: ..."; else ""
};

struct LargestBatch {
  std::optional<std::int64_t> batch;  ///< the largest batch that a trial showed to fit; none: not even a batch of 1
  std::string ended;                  ///< why the search ended early: "batch 16: the job failed: ..."; else ""
  std::vector<BatchTrial> trials;     ///< in the order in which they were made
};

/// Looks for the largest batch size in [1, most] that fits; it assumes that all smaller ones fit. Memory grows with the
/// batch almost in proportion, so that each next trial is where the line through two earlier ones meets `capacity`,
/// but at most eight times as large as what fits. The answer is proved by trials: it fits, and one more does not, unless
/// it is `most`, or a trial that says nothing ends the search: its job failed, or takes far less than a smaller batch.
/// @param attempt  records the job with a batch size
LargestBatch largest_batch(const std::function<BatchTrial(std::int64_t)>& attempt, Bytes capacity, std::int64_t most);

}  // namespace tidepool
