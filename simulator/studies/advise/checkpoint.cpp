#include "simulator/studies/advise/checkpoint.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "simulator/studies/advise/step_uses.hpp"

namespace tidepool {

namespace {

/// Follows one call of a module through forward and backward.
class Follower {
 public:
  Follower(const Trace& trace, const StepUses& uses, const ModuleCall& call, const KeptOperators& kept)
      : trace_{trace},
        uses_{uses},
        operators_{kept},
        result_{.call = call, .ends = {}, .again_ends = {}, .inputs = {}, .duration = {}} {}

  std::optional<CheckpointedCall> run() {
    leave_out_gathering();
    find_buffers();
    if (differs_) return {};
    find_backward();
    if (result_.again == StepUses::kNowhere) return {};
    for (const BufferId buffer : made_) find_ends(buffer);
    for (const BufferId buffer : made_) find_kept_end(buffer);
    if (!drops_) return {};
    find_stop();
    return std::move(result_);
  }

 private:
  using At = StepUses::At;

  const ModuleCall& call() const { return result_.call; }
  const Op& op_at(std::size_t position) const { return trace_.op(OpId{trace_.events()[position].id}); }
  bool in_call(std::size_t position) const { return position >= call().first && position < call().behind; }
  bool in_backward(std::size_t position) const {
    return position >= call().pass.forward_end && position < call().pass.backward_end &&
           op_at(position).phase == Phase::kBackward;
  }
  /// Whether the backward op at a position belongs to the module.
  bool of_module(std::size_t position) const { return lies_in(trace_.text(op_at(position).module), call().module); }
  bool made_in_call(BufferId buffer) const {
    const std::size_t alloc = uses_.of(buffer).alloc;
    return alloc != StepUses::kNowhere && in_call(alloc);
  }

  /// Leaves out the ops at the beginning that gather the module's parameters from other ranks, as FSDP's hook does: a
  /// hook of the module itself runs before what is checkpointed.
  void leave_out_gathering() {
    bool gathers = false;
    std::size_t behind = call().first;
    for (std::size_t i = call().first; i < call().behind; ++i) {
      if (trace_.events()[i].kind != EventKind::kRun) continue;
      const std::string_view module = trace_.text(op_at(i).module);
      if (!uses_.from_parameters(i) || (!module.empty() && module != call().module)) break;
      gathers = gathers || op_at(i).kind == OpKind::kCollective;
      behind = i + 1;
    }
    if (gathers) result_.call.first = behind;
  }

  /// Finds the buffers that the call makes, and its inputs.
  void find_buffers() {
    std::set<BufferId> seen;
    for (std::size_t i = call().first; i < call().behind; ++i) {
      if (trace_.events()[i].kind == EventKind::kAlloc) made_.push_back(BufferId{trace_.events()[i].id});
      if (trace_.events()[i].kind != EventKind::kRun) continue;
      const OpId op{trace_.events()[i].id};
      if (operators_.contains(operator_of(trace_.text(trace_.op(op).name)))) result_.kept.push_back(i);
      for (const Use& use : trace_.uses(op)) {
        const BufferId buffer = buffer_of(trace_, use);
        if (!counts(trace_.uses(op), use) || made_in_call(buffer)) continue;
        if (stays(trace_.buffer(buffer).kind)) {
          // Running statistics change too, but no op makes anything else of them.
          differs_ = differs_ || (use.in.valid() && makes_activation(op) && is_written(buffer));
        } else if (!uses_.gathered(buffer) && seen.insert(buffer).second) {
          result_.inputs.push_back(buffer);
          differs_ = differs_ || is_written(buffer);
        }
      }
    }
  }

  /// Whether the forward pass writes the buffer during the call or after it. Only a use that the framework reports
  /// proves a write; an address among a kernel's parameters does not.
  bool is_written(BufferId buffer) const {
    const std::vector<At>& uses = uses_.of(buffer).uses;
    return std::any_of(uses.begin(), uses.end(), [&](const At& at) {
      return at.writes && at.position >= call().first && at.position < call().pass.forward_end;
    });
  }

  /// Whether the op writes a buffer that does not outlive the iteration.
  bool makes_activation(OpId op) const {
    const auto uses = trace_.uses(op);
    return std::any_of(uses.begin(), uses.end(), [&](const Use& use) {
      return counts(uses, use) && use.out.valid() && !stays(trace_.buffer(buffer_of(trace_, use)).kind);
    });
  }

  /// Finds the first backward op that needs buffers which the call saved, and the last op of the module itself that
  /// needs such a buffer. A backward op of the module that uses a parameter or a buffer of the forward pass counts,
  /// too.
  void find_backward() {
    result_.again = StepUses::kNowhere;
    const auto needs = [&](std::size_t position, bool own) {
      if (result_.again == StepUses::kNowhere || position < result_.again) result_.again = position;
      if (own) result_.left = std::max(result_.left, position);
    };
    for (const std::size_t i :
         uses_.backward().within(call().module, call().pass.forward_end, call().pass.backward_end)) {
      if (uses_.from_parameters(i)) continue;  // it gathers parameters, and uses nothing that is saved
      const OpId op{trace_.events()[i].id};
      for (const Use& use : trace_.uses(op)) {
        const BufferId buffer = buffer_of(trace_, use);
        const std::size_t alloc = uses_.of(buffer).alloc;
        const bool of_forward = trace_.buffer(buffer).kind == BufferKind::kParameter ||
                                (alloc != StepUses::kNowhere && alloc < call().pass.forward_end);
        if (counts(trace_.uses(op), use) && of_forward) needs(i, true);
      }
    }
    for (const BufferId buffer : made_)
      if (!is_output(buffer))
        for (const At& at : uses_.of(buffer).uses)
          if (in_backward(at.position)) needs(at.position, of_module(at.position));
    if (result_.again == StepUses::kNowhere) return;
    result_.left = std::max(result_.left, result_.again);
    result_.again = allocations_for(trace_, result_.again);
  }

  /// Whether the forward pass uses the buffer after the call.
  bool is_output(BufferId buffer) const {
    const std::vector<At>& uses = uses_.of(buffer).uses;
    return std::any_of(uses.begin(), uses.end(), [&](const At& at) {
      return at.position >= call().behind && at.position < call().pass.forward_end;
    });
  }

  bool is_kept(std::size_t op) const { return std::binary_search(result_.kept.begin(), result_.kept.end(), op); }

  /// Extends the life of a kept output into the second run if the program frees it earlier. Workspaces are not kept.
  void find_kept_end(BufferId buffer) {
    const StepUses::Life& life = uses_.of(buffer);
    if (trace_.buffer(buffer).kind == BufferKind::kWorkspace) return;
    if (!is_kept(next_op(trace_, life.alloc)) || life.free == StepUses::kNowhere || life.free > result_.again) return;
    result_.kept_ends.push_back({buffer, std::min(life.free, call().behind - 1)});
  }

  void find_ends(BufferId buffer) {
    const StepUses::Life& life = uses_.of(buffer);
    if (life.free == StepUses::kNowhere || life.free < call().pass.forward_end) return;
    std::size_t last_forward = next_op(trace_, life.alloc), own = 0, others = 0;
    if (is_kept(last_forward)) return;
    for (const At& at : life.uses) {
      if (at.position < call().pass.forward_end) last_forward = std::max(last_forward, at.position);
      if (in_backward(at.position)) (of_module(at.position) ? own : others) = at.position;
    }
    if (is_output(buffer)) {
      if (own == 0) return;  // the module's backward ops do not use it, so its lifetime does not change
      result_.again_ends.push_back({buffer, own > others ? life.free : own});
      if (own > others)
        result_.ends.push_back({buffer, others > 0 ? others : uses_.released(trace_, buffer, last_forward)});
    } else if (life.free > result_.again) {
      result_.again_ends.push_back({buffer, life.free});
      result_.ends.push_back({buffer, uses_.released(trace_, buffer, last_forward)});
      drops_ = drops_ || trace_.buffer(buffer).size > Bytes{};
    }
  }

  /// Finds the position at which the second run stops. It stops when the last tensor is saved: after the op that makes
  /// this tensor, or before the op that reads and saves it.
  void find_stop() {
    result_.again_stop = call().first;
    for (const CheckpointedCall::End& end : result_.again_ends)
      for (const At& at : uses_.of(end.buffer).uses)
        if (in_call(at.position) && (at.writes || at.position == next_op(trace_, uses_.of(end.buffer).alloc)))
          result_.again_stop = std::max(result_.again_stop, at.position + 1);
    for (const CheckpointedCall::End& end : result_.again_ends)  // for buffers without recorded uses
      result_.again_stop = std::max(result_.again_stop, next_op(trace_, uses_.of(end.buffer).alloc) + 1);
    for (const BufferId buffer : made_)  // the second run must also reach ops whose kept outputs are still alive
      if (const StepUses::Life& life = uses_.of(buffer);
          is_kept(next_op(trace_, life.alloc)) && life.free > result_.again)
        result_.again_stop = std::max(result_.again_stop, next_op(trace_, life.alloc) + 1);
    for (std::size_t i = call().behind; i-- > result_.again_stop;)
      if (trace_.events()[i].kind == EventKind::kRun && saves_what_it_reads(i)) {
        result_.again_stop = allocations_for(trace_, i);
        break;
      }
    for (std::size_t i = call().first; i < result_.again_stop; ++i)
      if (trace_.events()[i].kind == EventKind::kRun && !is_kept(i)) result_.duration += op_at(i).duration;
  }

  bool saves_what_it_reads(std::size_t position) const {
    const OpId op{trace_.events()[position].id};
    for (const Use& use : trace_.uses(op)) {
      if (!counts(trace_.uses(op), use)) continue;
      for (const At& at : uses_.of(buffer_of(trace_, use)).uses)
        if (in_backward(at.position) && op_at(at.position).module == op_at(position).module) return true;
    }
    return false;
  }

  const Trace& trace_;
  const StepUses& uses_;
  const KeptOperators& operators_;
  CheckpointedCall result_;
  std::vector<BufferId> made_;
  bool differs_ = false;  // a second run would compute something else
  bool drops_ = false;
};

constexpr std::size_t kMostSets = 8;
constexpr int kLeastShare = 100;  // a group counts if it takes at least 1/100 of the time of all forward operators

struct Group {
  KeptOperators operators;
  Nanos time;
  Bytes made;
  bool random = false, unfit = false;
};

/// Bytes of the outputs of the op at a position. Sets `unfit` if another op changes one of them in place.
Bytes made_by(const Trace& trace, const StepUses& uses, std::size_t position, bool& unfit) {
  Bytes made;
  for (std::size_t i = allocations_for(trace, position); i < position; ++i) {
    const BufferId buffer{trace.events()[i].id};
    if (trace.buffer(buffer).kind == BufferKind::kWorkspace) continue;
    made += trace.buffer(buffer).size;
    for (const StepUses::At& at : uses.of(buffer).uses) unfit = unfit || (at.writes && at.position != position);
  }
  return made;
}

}  // namespace

std::string_view operator_of(std::string_view op) { return op.substr(0, op.find('.')); }

std::optional<CheckpointedCall> checkpointed_call(const Trace& trace, const StepUses& uses, const ModuleCall& call,
                                                  const KeptOperators& kept) {
  return Follower{trace, uses, call, kept}.run();
}

std::vector<KeptOperators> operators_to_keep(const Trace& trace) {
  const StepUses uses{trace};
  std::map<std::string, Group, std::less<>> by_operator;
  Nanos forward;
  for (std::size_t i = 0; i < trace.events().size(); ++i) {
    if (trace.events()[i].kind != EventKind::kRun) continue;
    const Op& op = trace.op(OpId{trace.events()[i].id});
    const std::string name{operator_of(trace.text(op.name))};
    if (op.phase != Phase::kForward || !name.starts_with("aten::")) continue;
    Group& group = by_operator[name];
    group.operators.insert(name);
    group.time += op.duration;
    group.made += made_by(trace, uses, i, group.unfit);
    group.random = group.random || op.random;
    forward += op.duration;
  }
  std::vector<Group> groups;
  Group random;
  for (auto& [name, group] : by_operator) {
    if (group.random) {
      random.operators.insert(name);
      random.time += group.time;
      random.made += group.made;
      random.unfit = random.unfit || group.unfit;
    } else {
      groups.push_back(std::move(group));
    }
  }
  groups.push_back(std::move(random));
  std::erase_if(groups, [&](const Group& group) {
    return group.unfit || group.made == Bytes{} || group.time.count() * kLeastShare < forward.count();
  });
  std::stable_sort(groups.begin(), groups.end(), [](const Group& a, const Group& b) {
    return Int128{a.time.count()} * b.made.count() > Int128{b.time.count()} * a.made.count();
  });
  std::vector<KeptOperators> sets;
  KeptOperators kept;
  for (const Group& group : groups) {
    if (sets.size() == kMostSets) break;
    kept.insert(group.operators.begin(), group.operators.end());
    sets.push_back(kept);
  }
  return sets;
}

}  // namespace tidepool
