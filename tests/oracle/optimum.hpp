// The least time of a tiny step, found by trying all plans.
#pragma once

#include <cstdint>
#include <string>

#include "simulator/machine.hpp"
#include "simulator/plan.hpp"
#include "traces/trace.hpp"

namespace tidepool {

/// The query: the least makespan of all plans that replay() accepts for this trace at this capacity, and that only do
/// what is allowed here besides running the ops of the program. Each action comes before the op of the program that
/// runs next; a copy of a version that an op updates is made when that op runs.
struct OptimumQuery {
  const Trace& trace;
  const Machine& machine;
  Bytes capacity;
  bool swap = false;   ///< plans may copy versions to the host and back; versions from before the step may begin there
  bool remat = false;  ///< plans may run ops again
  /// Places are ranges of the addresses [0, capacity) that do not move; otherwise bytes are counted, as on pool ideal.
  bool addresses = false;
  /// The search gives up beyond this number of partial plans, or if it has compared 200 times as many. About 300
  /// bytes of memory each.
  std::int64_t most_states = 1'000'000;
};

struct Optimum {
  bool exact = false;       ///< it is known that `makespan` is the least, or that no plan exists
  bool feasible = false;    ///< a plan was found
  Nanos makespan;           ///< no plan is faster; if `feasible`, the time of `plan`. Means nothing if no plan exists
  Plan plan;                ///< realised; replay() gives exactly `makespan`. Empty if there is none
  std::int64_t states = 0;  ///< number of partial plans that were found and that no earlier one dominated
};

/// Searches partial plans in the order of the earliest time at which they can end. Exponential in the size of the step:
/// ten ops take between a millisecond and minutes.
///
/// On several streams without addresses, the device gives a place the bytes that may be written soonest, even if its op
/// starts late and other bytes would do. Plans can change this by the order of drops, so all orders would have to be
/// tried. Instead, the search lets each place choose its bytes; no plan can be faster than that. If the device would
/// choose the same bytes, the answer is exact; otherwise it is only a bound.
/// @throws InputError  for a step that is too large or a machine that is not supported, see TinyStep
Optimum find_optimum(const OptimumQuery& query);

}  // namespace tidepool
