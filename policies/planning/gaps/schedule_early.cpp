#include "policies/planning/gaps/schedule_early.hpp"

#include <algorithm>

namespace tidepool {

std::vector<PlannedGap> schedule_early(const std::vector<Gap>& gaps, std::vector<std::uint32_t> swapped,
                                       std::vector<Bytes> load, Bytes limit, std::uint32_t from) {
  std::sort(swapped.begin(), swapped.end(), [&](std::uint32_t a, std::uint32_t b) {
    return gaps[a].due != gaps[b].due ? gaps[a].due < gaps[b].due : a < b;
  });
  std::vector<PlannedGap> planned;
  for (const std::uint32_t i : swapped) {
    const Gap& gap = gaps[i];
    const std::uint32_t earliest = std::max(from, gap.release + 1);
    std::uint32_t issue = gap.due;
    while (issue > earliest && load[issue - 1] + gap.size <= limit) load[--issue] += gap.size;
    planned.push_back({i, issue, 0});
  }
  return planned;
}

}  // namespace tidepool
