// The cut between the forward and the backward phase of a step: values to keep; the others are recomputed.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "policies/planning/remat/partition_ops.hpp"
#include "traces/base/quantity.hpp"
#include "traces/trace.hpp"

namespace tidepool {

/// A value, or an op with several outputs, each of which is a later node. Nodes are in an order in which they can run.
struct JointNode {
  enum class Phase : std::uint8_t {
    kForward,   ///< the step's result depends on it
    kAside,     ///< runs in the forward phase, but only the backward phase uses it
    kBackward,  ///< depends on the gradient of the result
  };
  Bytes size = {};
  Nanos runtime = {};
  std::vector<std::uint32_t> inputs = {};  ///< nodes before it, each once
  OpClass op = {};
  Phase phase = Phase::kForward;
  bool input = false;      ///< existed before the step
  bool parameter = false;  ///< an input that stays in any case: keeping it costs nothing
  bool handed_on = false;  ///< part of the step's result
  bool gone = false;       ///< freed before the backward phase, so it cannot be kept
  bool several = false;    ///< an op with several outputs, not a value
  bool part = false;       ///< one of the outputs of such an op
};
using JointGraph = std::vector<JointNode>;

/// kTable is knapsack_by_shares(), as in PyTorch.
enum class KnapsackSolver : std::uint8_t { kTable, kGreedy, kExact };

struct Partition {
  std::vector<std::uint32_t> kept = {};  ///< nodes, in order
  bool asked_solver = false;             ///< false: a cut was within the budget, or nothing was left to choose from
  std::size_t items = 0;                 ///< number of items from which the solver chose
  std::size_t kept_items = 0;
  Bytes bytes = {};  ///< of `kept`
};

/// The values to keep with a budget between 0 (inputs only) and 1 (the minimum cut after which only cheap ops run
/// again). For a budget in between, cuts after which more ops run again are tried. If none is within the budget, a
/// knapsack by runtime chooses further values to recompute. Of the bytes that the minimum cut keeps beyond the inputs,
/// about a share of `budget` is then kept. A few maximum flows. Source: PyTorch 2.15,
/// torch/_functorch/partitioners.py, choose_saved_values_set and solve_min_cut.
class Partitioner {
 public:
  explicit Partitioner(JointGraph graph);
  Partition choose(double budget, KnapsackSolver solver) const;

 private:
  struct Rules;
  struct Cut;
  Cut cut(const Rules& rules, const std::vector<bool>& may_run_again) const;
  bool is_banned(std::uint32_t node, const Rules& rules) const;
  bool materialized_in_backward(std::uint32_t node) const;
  bool fusible(std::uint32_t maker, std::uint32_t user) const;
  std::int64_t weight(std::uint32_t node) const;
  std::uint32_t first_unfusible(const std::vector<std::uint32_t>& starts, std::uint32_t last) const;
  void ban_used_far_apart(const std::vector<bool>& may_run_again, Cut& cut) const;
  void ban_long_chains(const std::vector<bool>& may_run_again, Cut& cut) const;
  void ban(std::uint32_t node, const std::vector<bool>& may_run_again, Cut& cut) const;
  bool forward(std::uint32_t node) const { return graph_[node].phase == JointNode::Phase::kForward; }
  bool backward(std::uint32_t node) const { return graph_[node].phase == JointNode::Phase::kBackward; }
  Bytes bytes(const std::vector<std::uint32_t>& nodes) const;

  JointGraph graph_;
  std::vector<std::vector<std::uint32_t>> users_;
  std::vector<std::uint32_t> distance_;       ///< by node: distance from the backward phase
  std::vector<std::uint32_t> forward_order_;  ///< by node: position among the forward nodes
  std::vector<std::uint32_t> inputs_;
};

/// A node for each version and view that forward or backward ops use or make, and one more for each op with several
/// outputs or none; workspaces of library calls do not count. An op's class comes from its name. A view has the size of
/// the buffer that it shows. The result of an in-place update is a new value, as after PyTorch's functionalisation. All
/// backward ops count as dependent on the root gradient. The forward phase has two results: its versions that are
/// outputs of the step, and the loss: the outputs of its last op that reads a version. A later op that reads nothing
/// makes the root gradient.
struct TraceGraph {
  JointGraph graph;
  std::vector<VersionId> values;  ///< by node; none for the node of an op with several outputs or none
};
TraceGraph joint_graph(const Trace& trace);

}  // namespace tidepool
