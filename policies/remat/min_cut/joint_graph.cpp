#include "policies/remat/min_cut/joint_graph.hpp"

#include <algorithm>

#include "policies/planning/remat/saved.hpp"

namespace tidepool {
namespace {

class GraphMaker {
 public:
  explicit GraphMaker(const Trace& trace)
      : trace_{trace}, backward_{first_backward_op(trace)}, node_of_(trace.versions().size(), kNever) {}

  TraceGraph make() {
    for (std::uint32_t op = 0; op < trace_.ops().size(); ++op)
      if (trace_.op(OpId{op}).phase != Phase::kOptimizer) add(OpId{op});
    hand_on();
    mark_gone();
    for (std::uint32_t node = static_cast<std::uint32_t>(result_.graph.size()); node-- > 0;) {
      JointNode& each = result_.graph[node];
      if (each.phase == JointNode::Phase::kBackward) continue;
      if (!each.handed_on && !needed_[node]) each.phase = JointNode::Phase::kAside;
      if (each.phase == JointNode::Phase::kForward)
        for (const std::uint32_t input : each.inputs) needed_[input] = true;
    }
    return std::move(result_);
  }

 private:
  std::uint32_t add_node(JointNode node, VersionId value) {
    const auto id = static_cast<std::uint32_t>(result_.graph.size());
    if (value.valid()) node_of_[value.index()] = id;
    result_.graph.push_back(std::move(node));
    result_.values.push_back(value);
    needed_.push_back(false);
    return id;
  }

  Bytes size_of(VersionId v) const { return trace_.buffer(trace_.version(v).buffer).size; }

  /// Whether a version is the workspace of a library call. A PyTorch operator does not have it as an output.
  bool is_workspace(VersionId v) const {
    return trace_.buffer(trace_.version(v).buffer).kind == BufferKind::kWorkspace && trace_.readers(v).empty();
  }

  /// The node of a version. Adds the version as an input if no forward or backward op has made it.
  std::uint32_t node_of(VersionId v) {
    if (node_of_[v.index()] != kNever) return node_of_[v.index()];
    JointNode node{.size = size_of(v), .inputs = {}, .input = true};
    node.parameter = trace_.buffer(trace_.version(v).buffer).kind == BufferKind::kParameter;
    return add_node(std::move(node), v);
  }

  void add(OpId op) {
    const Op& run = trace_.op(op);
    JointNode node{.runtime = run.duration, .inputs = {}, .op = class_of_op(trace_.text(run.name))};
    if (op.value() >= backward_) node.phase = JointNode::Phase::kBackward;
    std::vector<VersionId> made;
    for (const Use& use : trace_.uses(op)) {
      if (use.in.valid()) {
        const std::uint32_t input = node_of(use.in);
        if (std::find(node.inputs.begin(), node.inputs.end(), input) == node.inputs.end()) node.inputs.push_back(input);
      }
      if (!use.out.valid() || is_workspace(use.out) || std::find(made.begin(), made.end(), use.out) != made.end())
        continue;
      made.push_back(use.out);
      node.size += size_of(use.out);
    }
    if (op.value() < backward_ && !node.inputs.empty()) last_made_ = made;
    if (made.size() == 1) {
      add_node(std::move(node), made.front());
      return;
    }
    node.several = true;
    const JointNode::Phase phase = node.phase;
    const std::uint32_t maker = add_node(std::move(node), VersionId{});
    for (const VersionId v : made)
      add_node({.size = size_of(v),
                .inputs = {maker},
                .op = {.recomputable = true, .fusible = true},
                .phase = phase,
                .part = true},
               v);
  }

  void hand_on() {
    for (const VersionId v : trace_.outputs()) {
      const std::uint32_t node = node_of_[v.index()];
      if (node != kNever && result_.graph[node].phase != JointNode::Phase::kBackward && !result_.graph[node].input)
        result_.graph[node].handed_on = true;
    }
    for (const VersionId v : last_made_) result_.graph[node_of_[v.index()]].handed_on = true;
  }

  /// Marks versions that end before the backward phase. A version that the first backward op replaces in
  /// place is still there for that op.
  void mark_gone() {
    const std::vector<std::uint32_t> ends = ends_of_versions(trace_);
    const auto in_backward = [&](OpId op) { return op.value() >= backward_; };
    for (std::size_t node = 0; node < result_.graph.size(); ++node)
      if (const VersionId v = result_.values[node]; v.valid() && !result_.graph[node].input) {
        const VersionId root = trace_.root(v);
        const auto readers = trace_.readers(root), viewers = trace_.viewers(root);
        result_.graph[node].gone = ends[root.index()] <= backward_ &&
                                   std::none_of(readers.begin(), readers.end(), in_backward) &&
                                   std::none_of(viewers.begin(), viewers.end(), in_backward);
      }
  }

  const Trace& trace_;
  std::uint32_t backward_;
  std::vector<std::uint32_t> node_of_;  // by version
  std::vector<bool> needed_;            // by node: whether the values that the forward phase hands on depend on it
  std::vector<VersionId> last_made_;    // outputs of the last forward op that reads a version
  TraceGraph result_;
};

}  // namespace

TraceGraph joint_graph(const Trace& trace) { return GraphMaker{trace}.make(); }

}  // namespace tidepool
