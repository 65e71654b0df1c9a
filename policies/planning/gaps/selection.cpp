#include "policies/planning/gaps/selection.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <queue>
#include <string>

#include "policies/planning/gaps/excess_tree.hpp"
#include "policies/planning/gaps/load_area.hpp"
#include "policies/planning/gaps/schedule.hpp"
#include "traces/base/error.hpp"
#include "traces/base/nearest.hpp"

namespace tidepool {
namespace {

constexpr std::array<std::string_view, 5> kScoreNames{"doa", "aoa", "wdoa", "swdoa", "excess"};

bool considered(const std::vector<bool>& allowed, std::uint32_t gap) { return allowed.empty() || allowed[gap]; }

}  // namespace

GapScore find_gap_score(std::string_view name) {
  for (std::size_t i = 0; i < kScoreNames.size(); ++i)
    if (kScoreNames[i] == name) return static_cast<GapScore>(i);
  throw InputError{unknown_name("score", std::string{name}, {kScoreNames.begin(), kScoreNames.end()})};
}

std::vector<double> gap_scores(const StepCircle& circle, const std::vector<Gap>& gaps, const Machine& machine,
                               GapScore score, const SlotLimits& limits) {
  const LoadArea area{circle};
  const ExcessTree excess{circle, limits, ExcessTree::Asked::kHowMuch};
  std::vector<double> scores;
  scores.reserve(gaps.size());
  for (const Gap& gap : gaps) {
    const auto spare = static_cast<double>(spare_time(circle, gap, machine).count());
    const auto size = static_cast<double>(gap.size.count());
    switch (score) {
      case GapScore::kDoa:
        scores.push_back(spare);
        break;
      case GapScore::kAoa:
        scores.push_back(spare >= 0 ? spare * size : spare / size);
        break;
      case GapScore::kWdoa:
      case GapScore::kSwdoa:
        scores.push_back(area.of(gap));
        break;
      case GapScore::kExcess:
        scores.push_back(excess.excess(gap));
        break;
    }
  }
  return scores;
}

Selection select_by_score(const StepCircle& circle, const std::vector<Gap>& gaps, const std::vector<double>& scores,
                          const SlotLimits& limits, const std::vector<bool>& allowed) {
  std::vector<std::uint32_t> order(gaps.size());
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) { return scores[a] > scores[b]; });
  ExcessTree tree{circle, limits};
  Selection selection;
  for (const std::uint32_t i : order) {
    if (tree.fits()) break;
    if (!considered(allowed, i) || !tree.relieves(gaps[i])) continue;
    selection.gaps.push_back(i);
    tree.take(gaps[i]);
  }
  selection.peak = peak_without(circle, gaps, selection.gaps);
  selection.fits = tree.fits();
  return selection;
}

Selection select_submodular(const StepCircle& circle, const std::vector<Gap>& gaps, GapScore score,
                            const SlotLimits& limits, const std::vector<bool>& allowed) {
  constexpr std::uint32_t kExact = 64;
  LoadArea area{circle};
  ExcessTree excess{circle, limits, ExcessTree::Asked::kHowMuch};
  const auto value = [&](std::uint32_t i) {
    return score == GapScore::kExcess ? excess.excess(gaps[i]) : area.of(gaps[i]);
  };
  struct Entry {
    double value;
    std::uint32_t gap, picks;
    bool operator<(const Entry& other) const { return value != other.value ? value < other.value : gap > other.gap; }
  };
  std::priority_queue<Entry> queue;
  for (std::uint32_t i = 0; i < gaps.size(); ++i)
    if (considered(allowed, i)) queue.push({value(i), i, 0});
  Selection selection;
  while (!queue.empty() && !excess.fits()) {
    Entry best = queue.top();
    queue.pop();
    if (!excess.relieves(gaps[best.gap])) continue;  // later picks cannot change this
    const auto picks = static_cast<std::uint32_t>(selection.gaps.size());
    if (best.picks + (picks < kExact ? 0 : best.picks / 16) < picks) {  // its score is out of date
      queue.push({value(best.gap), best.gap, picks});
      continue;
    }
    selection.gaps.push_back(best.gap);
    area.take(gaps[best.gap]);
    excess.take(gaps[best.gap]);
  }
  selection.peak = peak_without(circle, gaps, selection.gaps);
  selection.fits = excess.fits();
  return selection;
}

Selection select_gaps(const StepCircle& circle, const std::vector<Gap>& gaps, const Machine& machine, GapScore score,
                      const SlotLimits& limits, const std::vector<bool>& allowed) {
  if (score == GapScore::kSwdoa || score == GapScore::kExcess)
    return select_submodular(circle, gaps, score, limits, allowed);
  return select_by_score(circle, gaps, gap_scores(circle, gaps, machine, score, limits), limits, allowed);
}

}  // namespace tidepool
