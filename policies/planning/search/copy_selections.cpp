#include "policies/planning/search/copy_selections.hpp"

#include <functional>
#include <vector>

#include "policies/planning/gaps/feedback.hpp"
#include "policies/planning/gaps/selection.hpp"
#include "policies/planning/search/fluid_shares.hpp"

namespace tidepool {

void feed_back(Trials& trials, const Planning& planning) {
  try_feedback(trials, planning.trace, planning.circle, planning.gaps, planning.machine, planning.capacity,
               trials.left() / 2);
}

void try_copies(Trials& trials, const Planning& planning, Bytes largest) {
  constexpr int kRounds = 5;
  using Select = std::function<Selection(const SlotLimits&)>;
  std::vector<Select> selections;
  for (const GapScore score : {GapScore::kSwdoa, GapScore::kDoa, GapScore::kWdoa, GapScore::kAoa, GapScore::kExcess})
    selections.emplace_back([&planning, score](const SlotLimits& limits) {
      return select_gaps(planning.circle, planning.gaps, planning.machine, score, limits);
    });
  const auto try_selections = [&] {
    for (const int slack : {0, 2, 4})  // tenths of the largest gap
      for (const Select& select : selections)
        for (const CopyOut copies : {CopyOut::kAtRelease, CopyOut::kWhenFree})
          if (!trials.over())
            try_rounds(trials, planning.circle, planning.gaps, planning.machine, planning.capacity,
                       largest * slack / 10, kRounds, copies, select);
  };
  try_selections();
  if (trials.over()) return;
  if (const std::vector<double> shares = fluid_shares(planning); !shares.empty()) {
    selections = {
        [&](const SlotLimits& limits) { return select_by_score(planning.circle, planning.gaps, shares, limits); }};
    try_selections();
  }
  feed_back(trials, planning);
}

}  // namespace tidepool
