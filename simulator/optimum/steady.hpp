// The least mean time of an iteration of a tiny step that is repeated for ever: all cycles are tried.
#pragma once

#include <cstdint>

#include "simulator/optimum/optimum.hpp"

namespace tidepool {

struct SteadyOptimum {
  bool exact = false;           ///< the search came to its end: no cycle has a lower mean, or there is none
  bool feasible = false;        ///< a cycle was found
  Nanos cycle;                  ///< time of its iterations together
  std::int64_t iterations = 0;  ///< of the cycle
  /// Iterations that lead to the cycle and once through it; the last `iterations` of them take `cycle` together.
  Plan plan;
  std::int64_t states = 0;  ///< partial plans that were looked at

  /// Mean time of an iteration, rounded down.
  Nanos mean() const { return iterations == 0 ? Nanos{} : cycle / iterations; }
};

/// Looks for a cycle of less mean time than the best one known, until there is none. What existed before an iteration
/// is where the one before has left it, copies that are under way included; a cycle is a sequence of iterations after
/// which all that is as it was before.
/// @throws InputError  for a step that is too large and a machine that is not searched, see TinyStep
SteadyOptimum find_steady_optimum(const OptimumQuery& query);

/// When each iteration of a plan ends: all lanes are done with what they have been given then.
std::vector<Nanos> iteration_ends(const Trace& trace, const Machine& machine, const Plan& plan);

}  // namespace tidepool
