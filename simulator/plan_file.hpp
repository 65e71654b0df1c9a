// A realised plan in a file: JSON lines, the first one says what was run and what it is predicted to cost, then one
// line for each action in issue order:
//
//   {"tidepool_plan":1,"trace_hash":"...","pool":"best-fit","policy":"dtr",...,"predicted":{"makespan_ns":...},"actions":2}
//   {"do":"alloc","version":7,"before":12,"offset_bytes":0,"size_bytes":512}
//   {"do":"run","op":12,"before":12}
//
// "do" is a verb of plan.hpp: reserve or release (with the number of "pages" where it is not a segment), map (with the
// "page" shown), unmap, alloc, scratch, free, run, copy, swap_out, swap_in, drop, await or next (with the number
// of the "iteration"). Without "before" it stands after the last op. Left out, "offset_bytes" and
// "size_bytes" are 0; an offset of -1 is that of a pool without addresses. Without "capacity_bytes" there is no limit.
#pragma once

#include <string>

#include "simulator/plan.hpp"
#include "simulator/result.hpp"
#include "simulator/run_spec.hpp"
#include "traces/input.hpp"
#include "traces/names.hpp"
#include "traces/trace.hpp"

namespace tidepool {

/// The verbs as plan files spell them.
template <>
std::span<const std::string_view> words<Verb>();

struct PlanFile {
  std::string trace_hash;  ///< Trace::hash() of the trace that it is for
  RunSpec spec;
  Totals predicted;  ///< what simulate() reported
  Plan plan;
};

/// The text of a plan file. O(actions).
std::string plan_text(const PlanFile& file);
/// Writes it as a whole or not at all; a name that ends in .zst is written compressed. @throws InputError if it cannot
void write_plan(const std::string& path, const PlanFile& file);

/// Reads a plan file back, equal to what was written.
/// @param trace  if given, a plan for another trace is refused, and so are versions and ops that it does not have
/// @throws InputError  "run.plan:9: 'version' is 12; expected 0 to 8",
///                     "run.plan:1: made for trace 1b60f7d2a3c4e5f6; expected the trace given, e5f61b60f7d2a3c4",
///                     "run.plan: ends after 7 of 12 actions; expected a complete file"
PlanFile parse_plan(const Input& input, const Trace* trace = nullptr);
PlanFile read_plan(const std::string& path, const Trace* trace = nullptr);

}  // namespace tidepool
