#include "simulator/engine/chain_cost.hpp"

#include <unordered_set>
#include <vector>

namespace tidepool {

Nanos chain_cost(const View& view, VersionId v) {
  std::vector<VersionId> wanted{v};
  std::unordered_set<std::uint32_t> seen{v.value()};
  Nanos cost;
  while (!wanted.empty()) {
    const VersionId next = wanted.back();
    wanted.pop_back();
    if (view.state(next).on_host) {
      cost += view.machine().h2d.time(view.size(next));
      continue;
    }
    cost += view.state(next).cost;
    view.for_each_parent(next, [&](VersionId parent) {
      if (!view.resident(parent) && seen.insert(parent.value()).second) wanted.push_back(parent);
    });
  }
  return cost;
}

}  // namespace tidepool
