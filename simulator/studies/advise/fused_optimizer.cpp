#include "simulator/studies/advise/fused_optimizer.hpp"

#include <algorithm>
#include <string_view>
#include <vector>

#include "simulator/studies/advise/step_uses.hpp"
#include "traces/step/rebuild.hpp"

namespace tidepool {
namespace {

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
