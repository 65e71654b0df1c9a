// Checkmate's integer program: what to keep and what to run again, node by node, within a memory limit.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "simulator/bounds/linear_program.hpp"
#include "traces/quantity.hpp"

namespace tidepool {

/// Nodes in the order in which they run for the first time. The first of them can be run again, the rest cannot. What
/// a node makes is one value.
struct KeepGraph {
  // By node that can be run again:
  std::vector<Nanos> time;                               ///< run again
  std::vector<Bytes> size;                               ///< of what it makes
  std::vector<Bytes> workspace;                          ///< needed besides while it is run again
  std::vector<std::uint32_t> last;                       ///< last node that reads it; itself if none does
  std::vector<std::vector<std::uint32_t>> again_inputs;  ///< nodes before it whose values it takes to run it again
  // By node:
  std::vector<std::vector<std::uint32_t>> inputs;  ///< nodes before it whose values it reads, of those run again
  std::vector<Bytes> before;                       ///< what is there besides these values when it is about to run
  std::vector<Bytes> during;                       ///< likewise while it runs

  std::size_t nodes() const { return inputs.size(); }
  std::size_t repeatable() const { return time.size(); }
};

/// For each node t, in front of its first run: which values are still there, and which are made again.
struct KeepSchedule {
  std::vector<std::vector<bool>> kept;   ///< by t, by node before it (Checkmate's S)
  std::vector<std::vector<bool>> again;  ///< likewise (R)
};

struct KeepCost {
  Nanos again;  ///< time of what is run again
  Bytes peak;
  bool operator==(const KeepCost&) const = default;
};

/// When the value of node `i` goes, in front of or at the first run of `t`: behind the last node among those run again
/// that reads it, i itself if none does; t if t reads it, nothing if it is kept for the next node or is not there.
std::optional<std::uint32_t> last_reader(const KeepGraph& graph, const KeepSchedule& schedule, std::size_t t,
                                         std::size_t i);

/// The least that must be run again for what is kept: what a node reads, or is kept next, and is not there.
KeepSchedule complete(const KeepGraph& graph, std::vector<std::vector<bool>> kept);

/// Goes through a complete schedule.
KeepCost cost_of(const KeepGraph& graph, const KeepSchedule& schedule);

struct KeepSolution {
  LinearProgram::Status status = LinearProgram::Status::kLimit;
  double bound = 0;  ///< no schedule of this graph runs again for less, in ns; with integers: of the solver
  std::optional<KeepSchedule> schedule;
};

/// The integer program, in variables S, R and FREE as in the paper (equations 1 to 8), where U is a variable of each
/// node and FREE is bounded by each of its hazards, which is a stronger relaxation than their sum. O(n^2 + n edges)
/// variables.
/// Paper: Jain et al., "Checkmate: Breaking the Memory Wall with Optimal Tensor Rematerialization", MLSys 2020.
KeepSolution solve_exactly(const KeepGraph& graph, Bytes capacity, const LinearProgram::Limits& limits);

/// Its relaxation, rounded in two phases (section 5.1): solved for all of the capacity, nine and eight tenths of it, S
/// at thresholds from 0.1 to 0.9, then the least R. Of those that fit into the capacity, the one with least time; of
/// none, the one with the least peak.
KeepSolution solve_by_rounding(const KeepGraph& graph, Bytes capacity);

}  // namespace tidepool
