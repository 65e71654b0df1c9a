// The least mean time of an iteration of a tiny step that is repeated endlessly, found by trying all cycles.
#pragma once

#include <cstdint>

#include "tests/oracle/optimum.hpp"

namespace tidepool {

struct SteadyOptimum {
  bool exact = false;           ///< the search was completed: no cycle has a lower mean, or there is none
  bool feasible = false;        ///< a cycle was found
  Nanos cycle;                  ///< total time of its iterations
  std::int64_t iterations = 0;  ///< number of iterations in the cycle
  /// Iterations that lead to the cycle, then the cycle once: the last `iterations`, which take `cycle` together.
  Plan plan;
  std::int64_t states = 0;  ///< number of partial plans that were found and that no earlier one dominated

  /// Mean time of an iteration, rounded down.
  Nanos mean() const { return iterations == 0 ? Nanos{} : cycle / iterations; }
};

/// Searches for a cycle with less mean time than the best known one, until there is none. The initial content of an
/// iteration is where the previous iteration has left it, and its copies may be under way. A cycle is a sequence of
/// iterations after which the state recurs. On several streams without addresses, places choose their bytes as in
/// find_optimum(); if the device would choose other bytes for the cycle that was found, there is no answer.
/// @throws InputError  for a step that is too large or a machine that is not supported, see TinyStep
SteadyOptimum find_steady_optimum(const OptimumQuery& query);

/// The end of each iteration of a plan: the time at which all lanes have done their work so far.
/// @param capacity  device memory, in which places without addresses choose bytes
std::vector<Nanos> iteration_ends(const Trace& trace, const Machine& machine, Bytes capacity, const Plan& plan);

}  // namespace tidepool
