#include "policies/planning/gaps/dead_content.hpp"

#include <algorithm>
#include <limits>

namespace tidepool {

std::vector<DeadContent> find_dead_content(const Trace& trace) {
  constexpr auto kUnused = std::numeric_limits<std::uint32_t>::max();
  std::vector<DeadContent> last(trace.buffers().size(), {VersionId{}, kUnused});
  for (std::uint32_t op = 0; op < trace.ops().size(); ++op) {
    for (const Use& use : trace.uses(OpId{op}))
      if (use.in.valid()) {
        const VersionId root = trace.root(use.in);
        last[trace.version(root).buffer.index()] = {root, op};
      }
    for (const VersionId made : trace.made(OpId{op})) last[trace.version(made).buffer.index()] = {made, op};
  }
  std::vector<DeadContent> dead;
  std::uint32_t next_op = 0;
  for (const Event& event : trace.events()) {
    if (event.kind == EventKind::kRun) next_op = event.id + 1;
    if (event.kind != EventKind::kFree) continue;
    const DeadContent& each = last[event.id];
    if (each.last_use != kUnused && each.last_use + 1 < next_op) dead.push_back(each);
  }
  std::sort(dead.begin(), dead.end(), [](const DeadContent& a, const DeadContent& b) {
    return a.last_use != b.last_use ? a.last_use < b.last_use : a.version < b.version;
  });
  return dead;
}

std::vector<Action> drops_of(const std::vector<DeadContent>& dead) {
  std::vector<Action> drops;
  for (const DeadContent& each : dead)
    drops.push_back({Verb::kDrop, OpId{each.last_use + std::size_t{1}}, each.version.value(), {}, {}});
  return drops;
}

}  // namespace tidepool
