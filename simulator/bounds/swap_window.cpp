// The bounds "swap-window" and "hybrid-window": the cost of bytes absent at one instant, in closed form (see
// window.hpp).
#include <fmt/format.h>

#include "simulator/bounds/bound.hpp"
#include "simulator/bounds/critical_path.hpp"
#include "simulator/bounds/window.hpp"

namespace tidepool {
namespace {

std::optional<Bound> bound(const BoundQuery& query, bool remat) {
  const Trace& trace = query.trace;
  if (trace.data().streams.size() > 1 || query.assume.copy_on_write || !iterations_are_apart(query) ||
      trace.ops().empty())
    return std::nullopt;
  const Absences step = find_absences(trace, query.steady);
  const WindowBound found = window_bound(step, {.capacity = query.capacity,
                                                .out_rate = fastest_out(query.machine, step.absences),
                                                .in_rate = fastest_in(query.machine, step.absences),
                                                .swap = true,
                                                .remat = remat,
                                                .repeats = query.steady,
                                                .whole = true});
  const std::string op =
      fmt::format("op {} ({})", found.at, trace.text(trace.ops()[static_cast<std::size_t>(found.at)].name));
  if (!found.feasible)
    return Bound{.feasible = false, .proof = fmt::format("more must be away during {} than can be", op)};
  if (found.stall <= 0) return std::nullopt;
  return Bound{.makespan = clock_start(query) + step.starts.back() + Nanos{static_cast<std::int64_t>(found.stall)},
               .proof = found.windows > 1
                            ? fmt::format("what must be away at {} instants, {} first of all", found.windows, op)
                            : fmt::format("what must be away during {}", op),
               .limited_by = found.lost.mostly()};
}

const RegisterBound kSwap{{.name = "swap-window",
                           .summary = "copies of what must be away at one instant take time before and behind it",
                           .remat = false,
                           .steady = true,
                           .compute = [](const BoundQuery& query) { return bound(query, false); }}};

const RegisterBound kHybrid{{.name = "hybrid-window",
                             .summary = "copies, or running again, of what must be away at one instant take time",
                             .steady = true,
                             .compute = [](const BoundQuery& query) { return bound(query, true); }}};

}  // namespace
}  // namespace tidepool
