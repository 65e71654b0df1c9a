// The least memory with which a policy reaches what is asked of it, without trying every capacity.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "simulator/sweep/sweep.hpp"

namespace tidepool {

/// What a run shall reach.
struct Objective {
  enum class Metric : std::uint8_t { kOutcome, kOverhead, kGap };
  Metric metric = Metric::kOutcome;
  Outcome outcome = Outcome::kOk;
  double limit = 0;        ///< of overhead (makespan / baseline - 1) or gap (makespan / bound - 1)
  bool inclusive = false;  ///< <= instead of <

  /// A run that did not end well has no overhead, and one without a bound no gap: those do not hold.
  bool holds(const Row& row) const;
};

/// Reads "overhead<1%", "gap<=2.5%" or "outcome=ok".
/// @throws InputError  "'overhead<1' is no objective; expected overhead<1%, gap<2% (or <=) or outcome=ok"
Objective parse_objective(std::string_view text);

/// One trace, machine, policy, pool and seed.
struct Answer {
  std::size_t part = 0;
  std::string key;  ///< of the run with the least capacity that holds; if none does, of the largest capacity
  bool found = false;
  std::size_t runs = 0;                 ///< that were looked at
  std::size_t points = 0;               ///< capacities that there were
  std::vector<Bytes> fails_above = {};  ///< larger capacities, of those looked at, that do not hold
};

/// Bisects the capacities of each grid for every trace, machine, policy, pool and seed, with all of them in step, so
/// that threads have something to do. Rows go to the database as those of a sweep, and what is there is not run again.
/// The answers do not depend on the number of threads. A shard has some of the policies, pools and seeds, with all
/// their capacities.
/// @return  in the order of the grids; when stopped, only the answers that are known
std::vector<Answer> find_least(std::span<const SweepPart> parts, const Objective& objective, Database& database,
                               const SweepOptions& options, SweepProgress& progress);

}  // namespace tidepool
