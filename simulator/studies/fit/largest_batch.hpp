// The largest batch size that fits, found with a few trials.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "traces/base/quantity.hpp"

namespace tidepool {

/// A batch size that was tried.
struct BatchTrial {
  std::int64_t batch = 0;
  bool fits = false;
  Bytes predicted = {};
  std::string failed = {};  ///< the reason why the trial gives no result, such as "the job failed: ..."; else ""
};

struct LargestBatch {
  std::optional<std::int64_t> batch;  ///< the largest batch that a trial showed to fit; none: no trial showed any
  std::string ended;                  ///< why the search ended early: "batch 16: the job failed: ..."; else ""
  std::vector<BatchTrial> trials;     ///< in the order in which they were made
};

/// Searches for the largest batch size in [1, most] that fits, assuming that all smaller ones fit. Memory grows almost
/// in proportion to the batch. So after batches 1 and 2, each trial is the batch at which the line through two earlier
/// trials meets `capacity`, but at most eight times the largest batch that fits. If that line leads to smaller batches,
/// the next trial is twice the largest batch that fits, or in the middle between it and the smallest that does not.
/// Trials prove the answer: it fits, and it is `most` or a batch one larger does not fit. A trial ends the search
/// without this proof if its job failed, or if it takes less than nine tenths of the memory of a smaller batch.
/// @param attempt  records the job with a batch size
LargestBatch largest_batch(const std::function<BatchTrial(std::int64_t)>& attempt, Bytes capacity, std::int64_t most);

}  // namespace tidepool
