// Search for the least capacity at which a policy meets an objective, without a run at every capacity: bisection.
#pragma once

#include <cstddef>
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

/// Searches the places 0 .. size-1 for the least one that holds, that is, meets the objective. Bisection assumes that
/// every place above one that holds also holds. To check this, the two places below the answer and the one above it are
/// tried, too. If one of those below holds, the search goes on below it. About log2(size) + 3 trials.
class Bisection {
 public:
  explicit Bisection(std::size_t size) : known_(size) {}

  /// The places to try next; none if the search has ended.
  std::vector<std::size_t> wanted() const;
  /// The result of the trial of a wanted place.
  void tell(std::size_t place, bool holds) { known_.at(place) = holds; }

  /// The answer, once wanted() is empty: it holds, the two places below it do not hold, nor does any tried place below
  /// them. None if the last place does not hold.
  std::optional<std::size_t> least() const;
  /// Tried places above the answer that do not hold: there, the objective is not monotone.
  std::vector<std::size_t> exceptions() const;
  std::size_t trials() const;

 private:
  /// The least place that is known to hold, and the largest place below it that is known not to hold (-1: none).
  std::pair<std::ptrdiff_t, std::ptrdiff_t> bracket() const;

  std::vector<std::optional<bool>> known_;
};

}  // namespace tidepool
