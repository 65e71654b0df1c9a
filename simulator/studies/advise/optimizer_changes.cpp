#include "simulator/studies/advise/optimizer_changes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <string_view>
#include <utility>
#include <vector>

#include "simulator/studies/advise/step_uses.hpp"
#include "traces/step/dependencies.hpp"
#include "traces/step/module_calls.hpp"
#include "traces/step/rebuild.hpp"

namespace tidepool {

namespace {

constexpr std::uint32_t kNone = ~0u;

bool writes(const Use& use) { return use.out.valid() && use.access != Access::kView; }

/// Disjoint sets of ops, which can be joined.
class Groups {
 public:
  explicit Groups(std::size_t count) : parent_(count) { std::iota(parent_.begin(), parent_.end(), 0u); }
  std::uint32_t of(std::uint32_t op) {
    while (parent_[op] != op) op = parent_[op] = parent_[parent_[op]];
    return op;
  }
  void join(std::uint32_t a, std::uint32_t b) { parent_[of(a)] = of(b); }

 private:
  std::vector<std::uint32_t> parent_;
};

/// One update: the steps of its ops and of the buffers that only they use, as recorded.
struct Update {
  std::vector<Event> steps;
  std::vector<BufferId> gradients;    ///< freed after it
  std::uint32_t last_before = kNone;  ///< it runs after this op
};

class Mover {
 public:
  explicit Mover(const Trace& trace)
      : trace_{trace}, groups_{trace.ops().size()}, users_(trace.buffers().size()), changes_(trace.buffers().size()) {
    for (std::uint32_t op = 0; op < trace.ops().size(); ++op)
      for (const Use& use : trace.uses(OpId{op})) {
        std::vector<std::uint32_t>& users = users_[buffer_of(trace, use).index()];
        if (users.empty() || users.back() != op) users.push_back(op);
        if (writes(use)) changes_[buffer_of(trace, use).index()] = true;
      }
    for (std::size_t buffer = 0; buffer < users_.size(); ++buffer) {
      if (!changes_[buffer]) continue;
      std::uint32_t last = kNone;
      for (const std::uint32_t op : users_[buffer]) {
        if (!updates(op)) continue;
        if (last != kNone) groups_.join(op, last);
        last = op;
      }
    }
    find_updates();
  }

  /// See no_early_updates().
  std::string hindrance() {
    const std::string clips =
        "the script clips or scales gradients before the optimizer's step, or an update needs several gradients";
    if (behind_.empty() || each_on_its_own()) return "";
    const bool changes = changes_gradients();
    for (std::uint32_t op = 0; op < trace_.ops().size(); ++op) {
      const auto uses = trace_.uses(OpId{op});
      const std::string_view name = trace_.text(trace_.ops()[op].name);
      if (updates(op) && name.starts_with("aten::_fused_"))
        return fmt::format("{} updates all parameters in one kernel; without fused=True it would be tried", name);
      if (!changes && updates(op) && name.starts_with("aten::_foreach_") &&
          std::count_if(uses.begin(), uses.end(), writes) > 1)
        return fmt::format("the lists of {} do not have one length; expected one tensor per parameter in each", name);
    }
    return clips;
  }

  std::optional<EarlyUpdates> move() {
    if (behind_.empty() || !each_on_its_own()) return std::nullopt;
    std::vector<bool> left_out(trace_.buffers().size());
    for (std::size_t i = 0; i < left_out.size(); ++i) {
      const Buffer& buffer = trace_.buffers()[i];
      left_out[i] = buffer.born_before && !buffer.outlives && buffer.kind == BufferKind::kGradient && users_[i].empty();
    }
    Rebuild to{trace_, left_out};
    std::vector<bool> freed = left_out;
    std::size_t moved = 0;
    for (const Event& event : trace_.events()) {
      if (event.kind == EventKind::kForget || moved_with(event) != nullptr) continue;
      if (event.kind == EventKind::kFree && freed[event.id]) continue;
      apply(event, to);
      if (event.kind != EventKind::kRun) continue;
      const auto [first, last] = behind_.equal_range(event.id);
      for (auto each = first; each != last; ++each, ++moved) {
        for (const Event& own : each->second->steps) apply(own, to);
        for (const BufferId gradient : each->second->gradients) to.free(gradient), freed[gradient.index()] = true;
      }
    }
    return EarlyUpdates{to.finish(Rebuild::Outputs::kAlive), moved};
  }

 private:
  /// Whether hooks can make the updates: each update reads at most one gradient and changes none. If an update reads
  /// several gradients or changes one, the script clips or scales gradients between backward and the optimizer's step.
  /// Nor can they if an update waits for what is done with its own buffers outside, as by DeepSpeed's collectives.
  bool each_on_its_own() {
    for (const std::vector<std::uint32_t>& users : users_)
      if (!users.empty() && updates(users.front()) && updates(users.back()) &&
          !std::all_of(users.begin(), users.end(), [&](std::uint32_t op) { return updates(op); }))
        return false;
    std::map<std::uint32_t, std::size_t> gradients;  // by group
    for (std::uint32_t i = 0; i < trace_.buffers().size(); ++i)
      if (is_of_step(i) && updates(users_[i].back()) && ++gradients[groups_.of(users_[i].back())] > 1) return false;
    return !changes_gradients();
  }

  bool changes_gradients() const {
    for (std::uint32_t i = 0; i < trace_.buffers().size(); ++i)
      for (const std::uint32_t op : is_of_step(i) ? users_[i] : std::vector<std::uint32_t>{})
        for (const Use& use : trace_.uses(OpId{op}))
          if (updates(op) && writes(use) && buffer_of(trace_, use) == BufferId{i}) return true;
    return false;
  }

  /// Whether the buffer is a gradient, and not one that only the optimizer uses.
  bool is_of_step(std::uint32_t buffer) const {
    return trace_.buffers()[buffer].kind == BufferKind::kGradient && !users_[buffer].empty() &&
           !updates(users_[buffer].front());
  }

  bool updates(std::uint32_t op) const { return trace_.ops()[op].phase == Phase::kOptimizer; }

  static void apply(const Event& step, Rebuild& to) {
    if (step.kind == EventKind::kAlloc) to.alloc(BufferId{step.id});
    if (step.kind == EventKind::kFree) to.free(BufferId{step.id});
    if (step.kind == EventKind::kRun) to.run(OpId{step.id});
  }

  /// The update that a step of the program belongs to; null: none.
  const Update* moved_with(const Event& step) {
    std::uint32_t op = step.id;
    if (step.kind != EventKind::kRun) {
      const auto& users = users_[step.id];
      if (users.empty() || trace_.buffers()[step.id].born_before) return nullptr;
      const auto other = [&](std::uint32_t user) { return !updates(user) || groups_.of(user) != groups_.of(users[0]); };
      if (std::any_of(users.begin(), users.end(), other)) return nullptr;
      op = users[0];
    }
    if (!updates(op)) return nullptr;
    const auto found = updates_.find(groups_.of(op));
    return found == updates_.end() ? nullptr : &found->second;
  }

  void find_updates() {
    for (std::uint32_t op = 0; op < trace_.ops().size(); ++op)
      if (updates(op)) wait_for_others(op, updates_[groups_.of(op)]);
    std::erase_if(updates_, [&](const auto& each) { return each.second.last_before == kNone; });
    for (const Event& event : trace_.events())
      if (const Update* const found = event.kind == EventKind::kForget ? nullptr : moved_with(event); found != nullptr)
        updates_.at(groups_.of(event.kind == EventKind::kRun ? event.id : users_[event.id][0])).steps.push_back(event);
    find_gradients();
    for (const auto& [group, update] : updates_) behind_.emplace(update.last_before, &update);
  }

  /// Records the last op outside of the optimizer that `op` must wait for.
  void wait_for_others(std::uint32_t op, Update& update) const {
    for (const Use& use : trace_.uses(OpId{op})) {
      const std::size_t buffer = buffer_of(trace_, use).index();
      if (!changes_[buffer]) continue;
      for (const std::uint32_t user : users_[buffer])
        if (user < op && !updates(user) && (update.last_before == kNone || user > update.last_before))
          update.last_before = user;
    }
  }

  /// Finds the gradients of this step that no op uses after their update.
  void find_gradients() {
    for (std::uint32_t i = 0; i < trace_.buffers().size(); ++i) {
      const Buffer& buffer = trace_.buffers()[i];
      if (buffer.kind != BufferKind::kGradient || buffer.born_before || users_[i].empty()) continue;
      const std::uint32_t last = users_[i].back();
      if (!updates(last) || updates(users_[i].front())) continue;
      if (const auto found = updates_.find(groups_.of(last)); found != updates_.end())
        found->second.gradients.push_back(BufferId{i});
    }
  }

  const Trace& trace_;
  Groups groups_;
  std::vector<std::vector<std::uint32_t>> users_;       ///< by buffer: ops, rising
  std::vector<bool> changes_;                           ///< by buffer: some op writes it
  std::map<std::uint32_t, Update> updates_;             ///< by group
  std::multimap<std::uint32_t, const Update*> behind_;  ///< by op: the updates that run directly after it
};

bool is_on_lists(const Trace& step, OpId id) {
  return step.op(id).phase == Phase::kOptimizer && step.text(step.op(id).name).starts_with("aten::_foreach_");
}

/// Whether the ops on lists are those of Adam, which has a fused form.
bool is_adam(const Trace& step) {
  bool averages = false, divides = false;
  for (std::size_t i = 0; i < step.ops().size(); ++i) {
    if (!is_on_lists(step, OpId{i})) continue;
    const std::string_view name = step.text(step.ops()[i].name);
    averages = averages || name.starts_with("aten::_foreach_lerp_");
    divides = divides || name.starts_with("aten::_foreach_addcdiv_");
  }
  return averages && divides;
}

/// By buffer: whether the step makes it, and only ops on lists use it.
std::vector<bool> temporaries(const Trace& step) {
  std::vector<bool> used(step.buffers().size()), temporary(step.buffers().size());
  for (std::size_t i = 0; i < temporary.size(); ++i)
    temporary[i] = !step.buffers()[i].born_before && !step.buffers()[i].outlives;
  for (std::size_t i = 0; i < step.ops().size(); ++i)
    for (const Use& use : step.uses(OpId{i})) {
      const std::size_t buffer = buffer_of(step, use).index();
      used[buffer] = true;
      temporary[buffer] = temporary[buffer] && is_on_lists(step, OpId{i});
    }
  for (std::size_t i = 0; i < temporary.size(); ++i) temporary[i] = temporary[i] && used[i];
  return temporary;
}

}  // namespace

std::optional<EarlyUpdates> update_early(const Trace& trace) {
  if (has_several_backward_passes(trace)) return std::nullopt;  // hooks would update after each pass
  const Trace divided = split_foreach(trace);
  return Mover{divided}.move();
}

std::string no_early_updates(const Trace& trace) {
  if (has_several_backward_passes(trace)) return "the step has several backward passes";
  return Mover{split_foreach(trace)}.hindrance();
}

std::optional<Trace> with_fused_optimizer(const Trace& step) {
  const std::vector<bool> left_out = temporaries(step);
  if (!is_adam(step) || std::find(left_out.begin(), left_out.end(), true) == left_out.end()) return {};
  Rebuild to{step};
  for (const Event& each : step.events()) switch (each.kind) {
      case EventKind::kAlloc:
        if (!left_out[each.id]) to.alloc(BufferId{each.id});
        break;
      case EventKind::kFree:
        if (!left_out[each.id]) to.free(BufferId{each.id});
        break;
      case EventKind::kRun: {
        const OpId op{each.id};
        std::vector<Use> uses;
        for (const Use& use : step.uses(op))
          if (!left_out[buffer_of(step, use).index()]) uses.push_back(use);
        if (!uses.empty() || step.uses(op).empty()) to.run(op, uses, step.op(op).duration);
        break;
      }
      case EventKind::kForget:  // has a meaning only if in-place writes are copies
        break;
    }
  return to.finish();
}

}  // namespace tidepool
