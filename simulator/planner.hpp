// Offline placement: all lifetimes are known before the first buffer is placed.
#pragma once

#include <atomic>
#include <optional>
#include <string>
#include <vector>

#include "simulator/instance.hpp"
#include "simulator/result.hpp"
#include "simulator/run_spec.hpp"

namespace tidepool {

/// Limits of a search. Without a time limit, a planner's answer only depends on the instance and its options.
struct PackingLimits {
  Bytes capacity = kNoLimit;                ///< a higher layout is of no use
  Bytes enough = {};                        ///< the search stops at a layout of at most this height
  std::optional<Nanos> time = {};           ///< wall time; overrides the planner's own limit of effort
  const std::atomic<bool>* stop = nullptr;  ///< another thread sets it: the planner returns its best layout
};

/// A layout, its height, and the proof if one was found.
struct Layout {
  /// kOk: `offsets` fit the capacity. kInfeasible: proof that no layout fits (`lower_bound` exceeds it). kTimeLimit:
  /// neither was found within the limits. kOutOfMemory: a heuristic, which proves nothing, ended above the capacity.
  Outcome outcome = Outcome::kOk;
  std::vector<Bytes> offsets;  ///< one for each item: the best layout found, also when it exceeds the capacity
  Bytes height;                ///< of `offsets`
  Bytes lower_bound;           ///< no layout is lower
  std::string proof;           ///< proof of `lower_bound`: "load", "search", ...

  bool optimal() const { return height == lower_bound; }
};

/// Thread-compatible: at most one thread at a time uses a planner.
class Planner {
 public:
  virtual ~Planner() = default;

  /// A layout of `instance`, which must have passed check(). Fixed items keep their offsets.
  virtual Layout plan(const Instance& instance, const PackingLimits& limits) = 0;
};

/// Checks a layout and returns its height. The check is a sweep over events_of(), the only code that it shares with
/// planners.
/// @throws std::logic_error  for an error of a planner; names two items that overlap, or one that is misaligned or not
/// at its fixed offset
Bytes verified_height(const Instance& instance, const std::vector<Bytes>& offsets);

}  // namespace tidepool
