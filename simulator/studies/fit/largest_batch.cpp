#include "simulator/studies/fit/largest_batch.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace tidepool {
namespace {

// The next batch is at most this many times the largest that fits: a line through two small batches may not hold for a
// large one.
constexpr std::int64_t kLeap = 8;

/// The batch at which the line through two trials reaches the capacity.
std::int64_t meeting(const BatchTrial& a, const BatchTrial& b, Bytes capacity) {
  const double slope =
      static_cast<double>((b.predicted - a.predicted).count()) / static_cast<double>(b.batch - a.batch);
  if (slope <= 0) return 0;  // memory does not grow, so the line reaches no capacity
  const double reach = static_cast<double>((capacity - a.predicted).count()) / slope;
  return a.batch + static_cast<std::int64_t>(std::clamp(reach, -1e15, 1e15));
}

/// Why the search must end after a trial; empty if it can go on.
std::string why_ended(const std::vector<BatchTrial>& before, const BatchTrial& trial) {
  if (!trial.failed.empty()) return fmt::format("batch {}: {}", trial.batch, trial.failed);
  for (const BatchTrial& other : before)
    if (other.batch < trial.batch && trial.predicted < other.predicted / 10 * 9)
      return fmt::format("batch {}: {} predicted, which is less than the {} of batch {}", trial.batch,
                         to_text(trial.predicted), to_text(other.predicted), other.batch);
  return "";
}

}  // namespace

LargestBatch largest_batch(const std::function<BatchTrial(std::int64_t)>& attempt, Bytes capacity, std::int64_t most) {
  LargestBatch found;
  std::optional<BatchTrial> fits, fails, before;
  std::int64_t next = 1;
  while (true) {
    const BatchTrial trial = attempt(next);
    found.ended = why_ended(found.trials, trial);
    found.trials.push_back(trial);
    if (!found.ended.empty()) return found;
    if (fits && trial.fits) before = fits;
    (trial.fits ? fits : fails) = trial;
    if (!fits) return found;
    found.batch = fits->batch;
    const std::int64_t end = fails ? fails->batch : most + 1;
    if (end - fits->batch <= 1) return found;
    const std::optional<BatchTrial>& other = fails ? fails : before;
    const std::int64_t guess = other ? meeting(*fits, *other, capacity) : 0;
    // Without a line, or if it leads back to smaller batches: double the batch, or take the middle between the batch
    // that fits and the one that does not. If the line reaches the capacity at the batch that fits, try one more.
    const std::int64_t blind = fails ? fits->batch + (end - fits->batch) / 2 : 2 * fits->batch;
    next = std::clamp(guess >= fits->batch ? guess : blind, fits->batch + 1, std::min(end - 1, kLeap * fits->batch));
  }
}

}  // namespace tidepool
