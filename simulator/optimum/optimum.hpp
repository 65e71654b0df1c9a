// The least time of a tiny step: all plans are tried.
#pragma once

#include <cstdint>
#include <string>

#include "simulator/machine/machine.hpp"
#include "simulator/plan.hpp"
#include "traces/trace.hpp"

namespace tidepool {

/// What is asked: the least makespan of all plans that replay() accepts for this trace at this capacity and that do
/// besides running the ops of the program only what is said here. Each action stands before the op of the program that
/// runs next, and a copy of what an op updates is made when that op runs.
struct OptimumQuery {
  const Trace& trace;
  const Machine& machine;
  Bytes capacity;
  bool swap = false;   ///< plans may copy versions to the host and back; what existed before the step may begin there
  bool remat = false;  ///< plans may run ops again
  /// Places are ranges of the addresses [0, capacity) that do not move; otherwise bytes are counted, as on pool ideal.
  bool addresses = false;
  std::int64_t most_states = 1'000'000;  ///< the search gives up beyond so many; about 300 bytes of memory each
  Bytes granule{1};                      ///< places have a multiple of so many bytes
};

struct Optimum {
  bool exact = false;       ///< the search came to its end: `makespan` is the least, or no plan exists
  bool feasible = false;    ///< a plan was found
  Nanos makespan;           ///< of `plan`; if it is not exact, no plan is faster
  Plan plan;                ///< realised; replay() gives exactly `makespan`. Empty if there is none
  std::int64_t states = 0;  ///< partial plans that were looked at
};

/// Searches partial plans in the order of the earliest time at which they can end. Exponential in the size of the step:
/// ten ops take between a millisecond and minutes.
/// @throws InputError  for a step that is too large and a machine that is not searched, see TinyStep
Optimum find_optimum(const OptimumQuery& query);

}  // namespace tidepool
