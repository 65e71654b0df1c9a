// The bounds "swap-whole" and "hybrid-whole": a program of whole buffers for small steps (see whole_program.hpp), for
// one step whose initial content may begin on the host, or for the mean iteration of an endlessly repeated step.
#include <fmt/format.h>

#include "simulator/solvers/bounds/bound.hpp"
#include "simulator/solvers/bounds/op_bounds.hpp"
#include "simulator/solvers/bounds/whole_program.hpp"

namespace tidepool {
namespace {

/// The number of positions of all contents together. The number of variables is in proportion to it.
std::int64_t extent(const StepContents& step) {
  std::int64_t sum = 0;
  for (const StepContent& content : step.contents) sum += content.last - content.made;
  return sum;
}

std::optional<Bound> whole_bound(const BoundQuery& query) {
  constexpr std::size_t kMostOps = 40;
  constexpr std::int64_t kMostExtent = 200;  // takes some tenths of a second
  constexpr std::int64_t kMostExtentOfBranches = 80;
  constexpr int kMostNodes = 30;
  const Trace& trace = query.trace;
  if (trace.data().streams.size() > 1 || trace.ops().empty() || trace.ops().size() > kMostOps ||
      query.assume.copy_on_write || !iterations_are_apart(query) || query.capacity >= trace.ideal_peak())
    return std::nullopt;
  const StepContents step = step_contents(trace, query.steady, query.remat);
  const std::int64_t size = extent(step);
  if (size > kMostExtent) return std::nullopt;
  const bool branches = !query.steady && size <= kMostExtentOfBranches;
  const WholeBound found = whole_bound(step, query.machine,
                                       {.capacity = query.capacity,
                                        .swap = query.swap,
                                        .remat = query.remat,
                                        .repeats = query.steady,
                                        .most_nodes = branches ? kMostNodes : 0});
  const std::string with = with_text(query.swap, query.remat);
  if (!found.feasible)
    return Bound{
        .with = with, .feasible = false, .proof = "an op does not fit even if everything that may be absent is absent"};
  if (found.stall <= 0) return std::nullopt;
  return Bound{
      .with = with,
      .makespan = clock_start(query) + earliest_ends(trace).back() + Nanos{static_cast<std::int64_t>(found.stall)},
      .proof = branches ? "branch and bound over whole buffers" : "multipliers of a linear program of whole buffers",
      .limited_by = found.lost.mostly()};
}

const RegisterBound kSwapWhole{
    {.name = "swap-whole",
     .summary = "copies of whole buffers, by op: a linear program of a small step",
     .remat = false,
     .quick = false,
     .steady = true,
     .compute = [](const BoundQuery& query) { return query.swap ? whole_bound(query) : std::nullopt; }}};

const RegisterBound kHybridWhole{
    {.name = "hybrid-whole",
     .summary = "copies of whole buffers and running again, by op: a linear program of a small "
                "step",
     .quick = false,
     .steady = true,
     .compute = [](const BoundQuery& query) { return query.remat ? whole_bound(query) : std::nullopt; }}};

}  // namespace
}  // namespace tidepool
