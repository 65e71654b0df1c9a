// The cut of a step between its forward and its backward phase: which values are kept, so that the rest runs again.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "policies/planning/remat/partition_ops.hpp"
#include "traces/quantity.hpp"

namespace tidepool {

/// A value, or an op that makes several (which are nodes behind it then). Nodes stand in an order in which they can run.
struct JointNode {
  enum class Phase : std::uint8_t {
    kForward,   ///< the step's result depends on it
    kAside,     ///< runs in the forward phase for the backward phase alone
    kBackward,  ///< depends on the gradient of the result
  };
  Bytes size = {};
  Nanos runtime = {};
  std::vector<std::uint32_t> inputs = {};  ///< nodes before it, each once
  OpClass op = {};
  Phase phase = Phase::kForward;
  bool input = false;      ///< was there before the step
  bool parameter = false;  ///< an input that stays anyway: to keep it costs nothing
  bool handed_on = false;  ///< part of the step's result
  bool several = false;    ///< no value itself
  bool part = false;       ///< one of the values of a node before it
};
using JointGraph = std::vector<JointNode>;

enum class KnapsackSolver : std::uint8_t { kTable, kGreedy, kExact };

struct Partition {
  std::vector<std::uint32_t> kept = {};  ///< nodes, in order
  bool asked_solver = false;             ///< else the cut was within the budget by itself
  std::size_t items = 0;                 ///< that the solver chose from
  std::size_t kept_items = 0;
  Bytes bytes = {};  ///< of `kept`
};

/// What is kept with a budget between 0 (inputs only) and 1 (the minimum cut that leaves all cheap ops to run again).
/// Between them, what else must run again is a knapsack by runtime within a share of the bytes that the minimum cut
/// keeps beyond the inputs. A few maximum flows. Source: PyTorch 2.15, torch/_functorch/partitioners.py,
/// choose_saved_values_set and solve_min_cut.
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
  std::vector<std::uint32_t> distance_;       ///< from the backward phase
  std::vector<std::uint32_t> forward_order_;  ///< among the forward nodes
  std::vector<std::uint32_t> inputs_;
};

}  // namespace tidepool
