// Search for the least capacity at which a policy meets an objective, without a run at every capacity.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "simulator/studies/sweep/sweep.hpp"

namespace tidepool {

/// The objective that a run is to meet.
struct Objective {
  enum class Metric : std::uint8_t { kOutcome, kOverhead, kGap };
  Metric metric = Metric::kOutcome;
  Outcome outcome = Outcome::kOk;
  double limit = 0;        ///< limit on the overhead (makespan / baseline - 1) or gap (makespan / bound - 1)
  bool inclusive = false;  ///< <= instead of <

  /// Whether a run meets the objective. A run that did not end well has no overhead, one without a bound has no gap.
  bool holds(const Row& row) const;
};

/// Reads "overhead<1%", "gap<=2.5%" or "outcome=ok".
/// @throws InputError  "'overhead<1' is no objective; expected overhead<1%, gap<2% (or <=) or outcome=ok"
Objective parse_objective(std::string_view text);

/// The least capacity for one trace, machine, policy, pool and seed.
struct Answer {
  std::size_t part = 0;  ///< index of the part with the trace
  std::string key;       ///< run with the least capacity that meets the objective; if none does, the largest capacity
  bool found = false;
  std::size_t runs = 0;                 ///< runs whose results were needed, new or from the database
  std::size_t points = 0;               ///< capacities in the grid
  std::vector<Bytes> fails_above = {};  ///< larger capacities that were tried and do not meet the objective
};

/// Bisects the capacities of each grid for every trace, machine, policy, pool and seed. All bisections run at the same
/// time, so that every thread has work. As in a sweep, rows are written to the database, and runs that it already has
/// are not done again. The answers do not depend on the number of threads. A shard has some of these combinations, each
/// with all its capacities.
/// @return  answers in the order of the grids; if stopped, only the answers that are known
std::vector<Answer> find_least(std::span<const SweepPart> parts, const Objective& objective, Database& database,
                               const SweepOptions& options, SweepProgress& progress);

}  // namespace tidepool
