// Checkmate's integer program: values to keep and nodes to rerun, node by node, within a memory limit.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "simulator/bounds/linear_program.hpp"
#include "traces/quantity.hpp"

namespace tidepool {

/// Nodes in the order of their first runs. Nodes at the front can be rerun, the rest cannot. Each node makes one value.
struct KeepGraph {
  // By node that can be rerun:
  std::vector<Nanos> time;                               ///< of a rerun
  std::vector<Bytes> size;                               ///< bytes of its value
  std::vector<Bytes> workspace;                          ///< further bytes during a rerun
  std::vector<std::uint32_t> last;                       ///< last node that reads it; itself if none does
  std::vector<std::vector<std::uint32_t>> again_inputs;  ///< earlier nodes whose values a rerun reads
  // By node:
  std::vector<std::vector<std::uint32_t>> inputs;  ///< earlier nodes that can be rerun and whose values it reads
  std::vector<Bytes> before;                       ///< other live bytes before it runs
  std::vector<Bytes> during;                       ///< other live bytes while it runs

  std::size_t nodes() const { return inputs.size(); }
  std::size_t repeatable() const { return time.size(); }
};

/// For each node t, before its first run: the values that are still resident, and the values that are recomputed.
struct KeepSchedule {
  std::vector<std::vector<bool>> kept;   ///< by t, by node before it (Checkmate's S)
  std::vector<std::vector<bool>> again;  ///< likewise (R)
};

struct KeepCost {
  Nanos again;  ///< time of all reruns
  Bytes peak;
  bool operator==(const KeepCost&) const = default;
};

/// The node after which the value of node `i` is dropped, before or at the first run of `t`: the last rerun node that
/// reads it, or i itself if none does; t if t reads it. None if the value is kept for the next node or is absent.
std::optional<std::uint32_t> last_reader(const KeepGraph& graph, const KeepSchedule& schedule, std::size_t t,
                                         std::size_t i);

/// The smallest set of reruns for the kept values: of absent values that a node reads, or that are kept for the next
/// node.
KeepSchedule complete(const KeepGraph& graph, std::vector<std::vector<bool>> kept);

/// Executes a complete schedule.
KeepCost cost_of(const KeepGraph& graph, const KeepSchedule& schedule);

struct KeepSolution {
  LinearProgram::Status status = LinearProgram::Status::kLimit;
  double bound = 0;  ///< a lower bound of the rerun time in ns; with integers it is the solver's
  std::optional<KeepSchedule> schedule;
};

/// Solves the integer program, in variables S, R and FREE as in the paper (equations 1 to 8). U is a variable of each
/// node, and FREE is bounded by each of its hazards, which is a stronger relaxation than a bound by their sum. O(n^2 +
/// n edges) variables.
/// Paper: Jain et al., "Checkmate: Breaking the Memory Wall with Optimal Tensor Rematerialization", MLSys 2020.
KeepSolution solve_exactly(const KeepGraph& graph, Bytes capacity, const LinearProgram::Limits& limits);

/// Solves the relaxation and rounds it in two phases (section 5.1), with the whole capacity and with nine and eight
/// tenths of it: S at thresholds from 0.1 to 0.9, then the least R. Returns the fastest of the schedules that fit the
/// capacity; if none fits, the one with the least peak.
KeepSolution solve_by_rounding(const KeepGraph& graph, Bytes capacity);

}  // namespace tidepool
