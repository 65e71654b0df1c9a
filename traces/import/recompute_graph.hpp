// Graphs of published recomputation problems: ops with a cost and one output each, budgets, and the best schedules
// known.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "traces/base/input.hpp"
#include "traces/trace.hpp"

namespace tidepool {

/// The paper whose model of cost and memory a graph follows; `--format` and `--assume` have the same names.
enum class GraphForm : std::uint8_t {
  kCheckmate,  ///< training graphs of MONeT's runs of Checkmate: costs in 0.01 ms, memory in KiB
  kMoccasin,   ///< graphs of Moccasin: costs are read as us, memory as bytes (random graphs have no units)
};
std::string_view to_text(GraphForm form);

struct GraphOp {
  std::string name;
  Phase phase = Phase::kUnknown;
  Nanos cost;
  Bytes output;
  std::vector<std::uint32_t> inputs;  ///< earlier ops whose outputs it reads
};

/// A published schedule for a budget.
struct GraphSchedule {
  /// By op: the ops that run again just before it runs for the first time, in order.
  std::vector<std::vector<std::uint32_t>> again;
  Nanos
      cost;  ///< of all runs: Moccasin's files give the cost of repeated runs, and the reader adds each op's cost once
  Bytes peak;  ///< with the fixed memory, if a value lives from each of its runs to its last reader before the next run
};

struct GraphBudget {
  std::string name;    ///< the budget as the file gives it, with a unit: "9GiB", "0.9x"
  Bytes capacity;      ///< including the fixed memory
  std::string status;  ///< "closed_1e-4", "optimal", "open", "infeasible", ...
  std::optional<GraphSchedule> schedule;
  std::optional<Nanos> least;      ///< the file's lower bound on GraphSchedule::cost in the paper's model
  std::optional<Nanos> least_any;  ///< the file's lower bound for all plans that keep the order of first runs
};

struct RecomputeGraph {
  GraphForm form = GraphForm::kCheckmate;
  std::vector<GraphOp> ops;  ///< in the order of their first runs
  Bytes fixed;               ///< always in use: inputs, parameters and their gradients; 0 for kMoccasin
  std::vector<GraphBudget> budgets;
};

/// @throws InputError  "g.json: op 5: \"cost\" is missing; expected a whole number" and the like
RecomputeGraph parse_recompute_graph(const Input& input, GraphForm form);

/// The form of a file, from its first bytes; none if it is neither.
std::optional<GraphForm> recompute_graph_form(std::string_view head);

/// One op after the other on one stream, each output a buffer that ends with its last reader. Nothing but the fixed
/// memory outlives the step.
Trace to_trace(const RecomputeGraph& graph);

}  // namespace tidepool
