// A realised plan in a file, as JSON lines. The first line has the run's inputs and its predicted cost. Each further
// line is an action, in issue order:
//
//   {"tidepool_plan":1,"trace_hash":"...","pool":"best-fit","policy":"dtr",...,"predicted":{...},"actions":2}
//   {"do":"alloc","version":7,"before":12,"offset_bytes":0,"size_bytes":512}
//   {"do":"run","op":12,"before":12}
//
// "do" is a verb of plan.hpp: reserve or release (with the number of "pages" if the memory is not a segment), map (with
// the "page" where the mapped memory begins), unmap, alloc, scratch, free, run, copy, swap_out, swap_in, drop, await or
// next (with the number of the "iteration"). An action without "before" comes after the last op. An action that names a
// place has "offset_bytes" and "size_bytes"; in others, these are 0 if absent. An offset of -1 means a pool without
// addresses. Without "capacity_bytes" there is no limit.
//
// A plan with an order of its own has format 2. Its first line also has
//
//   "order":{"rule":"eager","lists_apart":true,"ops":[[0,120],[340,1],[120,2]]}
//
// with the ops of the trace in the order in which they run, as ranges of successive ops: the first op and the number of
// ops. With "lists_apart", each op on lists of tensors has been divided first (split_foreach), and the ranges count the
// ops after this division. Actions use the ids of the step in this order; 'tidepool order' writes the same step.
// "trace_hash" is the hash of the recorded step.
#pragma once

#include <string>

#include "simulator/plan.hpp"
#include "simulator/result.hpp"
#include "simulator/run_spec.hpp"
#include "traces/base/input.hpp"
#include "traces/names.hpp"
#include "traces/trace.hpp"

namespace tidepool {

/// The names of the verbs in plan files.
template <>
std::span<const std::string_view> words<Verb>();

struct PlanFile {
  std::string trace_hash;  ///< Trace::hash() of the plan's trace
  RunSpec spec;
  Totals predicted;  ///< what simulate() reported
  Plan plan;
};

/// Whether a path is a plan file, by its first bytes or, if it is compressed, by its name.
bool is_plan_file(const std::string& path);

/// The text of a plan file. O(actions).
std::string plan_text(const PlanFile& file);
/// Writes the whole file or nothing, compressed if the name ends in .zst. @throws InputError  if writing fails
void write_plan(const std::string& path, const PlanFile& file);

/// Reads a plan file. The result equals the plan that was written, except RunSpec::count_search and Machine::sharing,
/// which the file does not have.
/// @param trace  if given, these are refused: a plan for another trace, an order of other ops than the trace's, and
///               versions and ops that the trace does not have
/// @throws InputError  "run.plan:9: 'version' is 12; expected 0 to 8",
///                     "run.plan:1: made for trace 1b60f7d2a3c4e5f6; expected the trace given, e5f61b60f7d2a3c4",
///                     "run.plan:1: order: 91 ops; expected each of the step's 92 once",
///                     "run.plan: ends after 7 of 12 actions; expected a complete file"
PlanFile parse_plan(const Input& input, const Trace* trace = nullptr);
PlanFile read_plan(const std::string& path, const Trace* trace = nullptr);

}  // namespace tidepool
