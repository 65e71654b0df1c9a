#include "policies/planning/search/gap_classes.hpp"

#include <algorithm>
#include <map>
#include <tuple>

namespace tidepool {

std::vector<GapClass> gap_classes(const Structure& structure, const StepCircle& circle, const std::vector<Gap>& gaps) {
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t, bool, Bytes>, std::size_t> known;
  std::vector<GapClass> classes;
  for (std::uint32_t i = 0; i < gaps.size(); ++i) {
    const Gap& gap = gaps[i];
    const std::uint32_t released = structure.like[gap.release], due = structure.like[gap.due % circle.size()];
    const std::uint32_t made = gap.made < circle.size() ? structure.like[gap.made] : gap.made;
    const auto [found, added] = known.try_emplace({made, released, due, gap.crosses, gap.size}, classes.size());
    if (added) classes.emplace_back();
    classes[found->second].members.push_back(i);
  }
  const auto lasts = [&](std::uint32_t i) { return circle.at(gaps[i].due) - released(circle, gaps[i]); };
  for (GapClass& one : classes)
    std::sort(one.members.begin(), one.members.end(), [&](std::uint32_t a, std::uint32_t b) {
      if (lasts(a) != lasts(b)) return lasts(a) > lasts(b);
      return gaps[a].release != gaps[b].release ? gaps[a].release < gaps[b].release : a < b;
    });
  return classes;
}

}  // namespace tidepool
