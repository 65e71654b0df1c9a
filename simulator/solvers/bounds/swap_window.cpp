// The bounds "swap-window", "hybrid-window" and "hybrid-cut": the cost of bytes absent at one instant (see window.hpp).
// They are for steps of one stream, and hold for any number of reruns. The first two are closed forms. "hybrid-cut"
// also counts the inputs of reruns: each input is resident, copied, or made again by reruns that minimum cuts count.
#include <fmt/format.h>

#include <string_view>

#include "simulator/solvers/bounds/bound.hpp"
#include "simulator/solvers/bounds/op_bounds.hpp"
#include "simulator/solvers/bounds/recompute_model.hpp"
#include "simulator/solvers/bounds/window.hpp"

namespace tidepool {
namespace {

/// @param what  the reason for lost time, as the beginning of a sentence
std::optional<Bound> answer(const BoundQuery& query, const Absences& step, const WindowBound& found,
                            std::string_view what) {
  const Trace& trace = query.trace;
  const std::string op =
      fmt::format("op {} ({})", found.at, trace.text(trace.ops()[static_cast<std::size_t>(found.at)].name));
  if (!found.feasible)
    return Bound{.feasible = false,
                 .proof = fmt::format("{} does not fit even if everything that may be absent is absent", op)};
  if (found.stall <= 0) return std::nullopt;
  return Bound{.makespan = clock_start(query) + step.starts.back() + Nanos{static_cast<std::int64_t>(found.stall)},
               .proof = found.windows > 1 ? fmt::format("{} at {} instants, {} first of all", what, found.windows, op)
                                          : fmt::format("{} during {}", what, op),
               .limited_by = found.lost.mostly()};
}

std::optional<Bound> window_bound(const BoundQuery& query, bool remat) {
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
  return answer(query, step, found, "bytes that must be absent");
}

std::optional<Bound> cut(const BoundQuery& query) {
  const Trace& trace = query.trace;
  if (!query.swap || !query.remat || trace.data().streams.size() > 1 || query.assume.copy_on_write ||
      !iterations_are_apart(query) || trace.ops().empty() || query.capacity >= trace.ideal_peak())
    return std::nullopt;
  const Absences step = find_absences(trace, query.steady);
  const RecomputeModel model{trace, query.assume, StreamId{0}};
  std::vector<Absence> copies = step.absences;  // content that only reruns read may be copied, too
  for (const Buffer& buffer : trace.buffers()) copies.push_back({.size = buffer.size});
  const WindowBound found = window_bound(step, {.capacity = query.capacity,
                                                .out_rate = fastest_out(query.machine, copies),
                                                .in_rate = fastest_in(query.machine, copies),
                                                .remat = true,
                                                .repeats = query.steady,
                                                .whole = true,
                                                .model = &model});
  return answer(query, step, found, "bytes that must be absent, and the inputs of their reruns,");
}

const RegisterBound kSwapWindow{
    {.name = "swap-window",
     .summary = "bytes that must be absent at one instant are copied out before it and back after it",
     .remat = false,
     .steady = true,
     .compute = [](const BoundQuery& query) { return window_bound(query, false); }}};

const RegisterBound kHybridWindow{{.name = "hybrid-window",
                                   .summary = "bytes that must be absent at one instant are copied or recomputed",
                                   .steady = true,
                                   .compute = [](const BoundQuery& query) { return window_bound(query, true); }}};

const RegisterBound kCut{{.name = "hybrid-cut",
                          .summary = "the same with all that reruns read: minimum cuts with a price on memory",
                          .quick = false,
                          .steady = true,
                          .compute = cut}};

}  // namespace
}  // namespace tidepool
