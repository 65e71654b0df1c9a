#include "policies/hybrid/tide_prices/step_model.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "policies/planning/search/reruns.hpp"

namespace tidepool {

StepModel::StepModel(const Trace& of, const RunSpec& run, bool recomputes, Bytes least,
                     std::vector<DeadContent> dropped)
    : trace{of},
      spec{run},
      dead{std::move(dropped)},
      dead_drops{drops_of(dead)},
      circle{step_circle(of, SlotBegins::kAfterFrees, dead)},
      gaps{find_gaps_of_run(of, least, circle, run)},
      machine{run.machine},
      recompute{recomputes ? Reruns{of, gaps}.costs() : std::vector<Nanos>(gaps.size(), Reruns::kImpossible)},
      by_release(gaps.size()) {
  machine.h2d.latency += machine.submit;
  machine.d2h.latency += machine.submit;
  for (const Gap& gap : gaps) {
    in.push_back(machine.h2d.time(gap.size));
    out.push_back(machine.d2h.time(gap.size));
  }
  std::iota(by_release.begin(), by_release.end(), 0U);
  std::stable_sort(by_release.begin(), by_release.end(),
                   [this](std::uint32_t a, std::uint32_t b) { return gaps[a].release < gaps[b].release; });
}

bool StepModel::can_drop(std::size_t gap) const { return recompute[gap] != Reruns::kImpossible; }

}  // namespace tidepool
