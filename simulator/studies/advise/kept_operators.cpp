#include "simulator/studies/advise/kept_operators.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "simulator/studies/advise/step_uses.hpp"

namespace tidepool {
namespace {

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
