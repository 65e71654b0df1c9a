#include "validator/alignment.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "simulator/options.hpp"
#include "simulator/registry.hpp"

namespace tidepool {

Bytes granule_of(const RunSpec& spec) {
  const PoolInfo& info = find_pool(spec.pool.name);
  const bool chosen = std::any_of(info.options.begin(), info.options.end(),
                                  [](const OptionInfo& option) { return option.name == "alignment"; });
  const Bytes own = chosen ? Options{info.name, info.options, spec.pool.options}.bytes("alignment") : info.granule;
  return own == Bytes{} ? kDeviceAlignment : std::min(own, kDeviceAlignment);
}

void check_alignment(const PlanFile& file, Bytes granule) {
  for (const Action& action : file.plan.actions) {
    const bool placed = action.verb == Verb::kAlloc || action.verb == Verb::kScratch || action.verb == Verb::kSwapIn;
    if (!placed || action.offset == kNoAddress || action.offset.count() % granule.count() == 0) continue;
    throw PlanError{fmt::format("{}: it begins at {} B; expected a multiple of {} B", to_text(action),
                                action.offset.count(), granule.count())};
  }
}

}  // namespace tidepool
