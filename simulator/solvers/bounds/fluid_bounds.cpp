// The bounds "swap-fluid" and "hybrid-fluid": a linear program over the whole step (see fluid.hpp).
#include "simulator/solvers/bounds/bound.hpp"
#include "simulator/solvers/bounds/fluid.hpp"
#include "simulator/solvers/bounds/op_bounds.hpp"
#include "simulator/solvers/bounds/window.hpp"

namespace tidepool {
namespace {

constexpr Nanos kLongestSearch{120'000'000'000};  // wall time; multipliers found by then still give a bound
constexpr std::size_t kMostOps = 5'000;           // with more, the program takes minutes and gigabytes

std::optional<Bound> fluid_bound(const BoundQuery& query, bool remat) {
  const Trace& trace = query.trace;
  if (trace.data().streams.size() > 1 || query.assume.copy_on_write || !iterations_are_apart(query) ||
      query.capacity >= trace.ideal_peak())
    return std::nullopt;
  const Absences step = find_absences(trace, query.steady);
  const FluidBound found = fluid_bound(step,
                                       {.capacity = query.capacity,
                                        .out_rate = fastest_out(query.machine, step.absences),
                                        .in_rate = fastest_in(query.machine, step.absences),
                                        .remat = remat,
                                        .repeats = query.steady,
                                        .whole = true},
                                       {.time = query.time_limit.value_or(kLongestSearch)});
  if (!found.feasible || found.stall <= 0) return std::nullopt;  // the solver's verdict of infeasibility is no proof
  return Bound{.makespan = clock_start(query) + step.starts.back() + Nanos{static_cast<std::int64_t>(found.stall)},
               .proof = "multipliers of a linear program of all copies",
               .limited_by = found.limited_by};
}

const RegisterBound kSwapFluid{{.name = "swap-fluid",
                                .summary = "copies as a fluid over the whole step: a linear program",
                                .remat = false,
                                .quick = false,
                                .steady = true,
                                .most_ops = kMostOps,
                                .compute = [](const BoundQuery& query) { return fluid_bound(query, false); }}};

const RegisterBound kHybridFluid{
    {.name = "hybrid-fluid",
     .summary = "copies and running again as a fluid over the whole step: a linear program",
     .quick = false,
     .steady = true,
     .most_ops = kMostOps,
     .compute = [](const BoundQuery& query) { return fluid_bound(query, true); }}};

}  // namespace
}  // namespace tidepool
