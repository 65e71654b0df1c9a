// The integer programs of Checkmate, POET and Rockmate: values to keep and nodes to rerun, node by node, within a
// memory limit. POET's also copies values to a second place; Rockmate's is for one block of a step.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "simulator/solvers/bounds/linear_program.hpp"
#include "traces/base/quantity.hpp"

namespace tidepool {

/// Nodes in the order of their first runs. Nodes at the front can be rerun, the rest cannot. Each node makes one value.
struct KeepGraph {
  // For each node that can be rerun:
  std::vector<Nanos> time;                               ///< of a rerun
  std::vector<Bytes> size;                               ///< bytes of the node's value
  std::vector<Bytes> workspace;                          ///< further bytes during a rerun
  std::vector<std::uint32_t> last;                       ///< last node that reads its value, or itself
  std::vector<std::vector<std::uint32_t>> again_inputs;  ///< earlier nodes whose values a rerun reads
  // For each node:
  std::vector<std::vector<std::uint32_t>> inputs;  ///< earlier nodes that can be rerun and whose values it reads
  std::vector<Bytes> before;                       ///< other live bytes before it runs
  std::vector<Bytes> during;                       ///< other live bytes while it runs

  // POET; by node that can be rerun, or empty where values stay in one place:
  std::vector<Nanos> page_out, page_in;  ///< price of copying its value to the second place, and back
  std::optional<Nanos> most_again;       ///< limit of the time of all reruns

  // Rockmate; of a block whose forward part is not part of the schedule:
  std::uint32_t first_planned = 0;  ///< nodes before it keep every value, and their memory is not limited
  std::optional<Bytes> most_kept;   ///< limit of the bytes of values that are kept for `first_planned`

  bool operator==(const KeepGraph&) const = default;
  std::size_t nodes() const { return inputs.size(); }
  std::size_t repeatable() const { return time.size(); }
  bool pages() const { return !page_in.empty(); }
};

/// For each node t, before its first run: the values that are still resident, and the values that are recomputed.
struct KeepSchedule {
  std::vector<std::vector<bool>> kept;   ///< by t, by node before it (Checkmate's S)
  std::vector<std::vector<bool>> again;  ///< by t, by node before it: whether it is rerun (R)
  // Where values have a second place:
  std::vector<std::vector<bool>> paged_out;  ///< values that are copied there while t runs (POET's M^out)
  std::vector<std::vector<bool>> paged_in;   ///< values that are copied back while t runs, for the next node (M^in)
  bool operator==(const KeepSchedule&) const = default;
};

struct KeepCost {
  Nanos again;  ///< time of all reruns
  Bytes peak;
  Nanos paged = {};  ///< price of all copies
  Nanos price() const { return again + paged; }
  bool operator==(const KeepCost&) const = default;
};

/// The node after which the value of node `i` is dropped, before or at the first run of `t`: the last rerun node that
/// reads it, or i itself if none does; t if t reads it. None if the value is kept for the next node or is absent.
std::optional<std::uint32_t> last_reader(const KeepGraph& graph, const KeepSchedule& schedule, std::size_t t,
                                         std::size_t i);

/// Completes a schedule with the smallest set of reruns for the kept values: reruns of absent values that a node reads,
/// or that are kept for the next node.
/// @param paged_in  by t, by node: whether the node's value is copied back while t runs, and not recomputed. This
///                  counts only for an absent value that is kept for the next node and was kept for an earlier one. It
///                  is copied out once, at the first node that it is kept for. Empty: no copies
KeepSchedule complete(const KeepGraph& graph, std::vector<std::vector<bool>> kept,
                      const std::vector<std::vector<bool>>& paged_in = {});

/// Executes a complete schedule, from `first_planned` on.
KeepCost cost_of(const KeepGraph& graph, const KeepSchedule& schedule);

struct KeepSolution {
  LinearProgram::Status status = LinearProgram::Status::kLimit;
  double bound = 0;  ///< a lower bound of the price in ns; with integers it is the solver's
  std::optional<KeepSchedule> schedule;
};

/// Solves the integer program, in variables S, R and FREE as in the paper (equations 1 to 8). U is a variable of each
/// node, and FREE is bounded by each of its hazards, which is a stronger relaxation than a bound by their sum. O(n^2 +
/// n * edges) variables.
/// With a second place, POET's S^SD, M^in and M^out are added. A value is then kept only if it was kept, recomputed or
/// copied back while the previous node ran; only values with a copy are copied back, and only kept values are copied
/// out. In a block, nodes before `first_planned` keep every value.
/// Papers: Jain et al., "Checkmate: Breaking the Memory Wall with Optimal Tensor Rematerialization", MLSys 2020; Patil
/// et al., "POET: Training Neural Networks on Tiny Devices with Integrated Rematerialization and Paging", ICML 2022;
/// Zhao et al., "Rockmate: an Efficient, Fast, Automatic and Generic Tool for Re-materialization in PyTorch", ICML
/// 2023.
KeepSolution solve_exactly(const KeepGraph& graph, Bytes capacity, const LinearProgram::Limits& limits);

/// Solves the relaxation and rounds it in two phases (section 5.1), with the whole capacity and with nine and eight
/// tenths of it: S at thresholds from 0.1 to 0.9, then the least R. With a second place, programs without copies are
/// rounded too. Returns the cheapest of the schedules that fit the capacity and the limit on reruns. If none fits both,
/// it returns, of those that fit the capacity, the one with the least time of reruns; else the one with the least peak.
KeepSolution solve_by_rounding(const KeepGraph& graph, Bytes capacity);

/// A schedule for the capacity. It is that of the integer program, if the program is given time and finds one in that
/// time; else that of rounding, which may exceed the capacity (see solve_by_rounding). If the relaxation has no
/// solution, the capacity is raised in up to four steps, the last to the peak of keeping everything. None if all values
/// can be kept, or if there is no schedule.
std::optional<KeepSchedule> schedule_within(const KeepGraph& graph, Bytes capacity, std::optional<Nanos> exact_time);

}  // namespace tidepool
