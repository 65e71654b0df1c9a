#include "policies/planning/gaps/feature_maps.hpp"

#include "policies/planning/remat/saved.hpp"

namespace tidepool {

std::vector<std::uint32_t> feature_maps(const Trace& trace, const std::vector<Gap>& gaps) {
  const std::uint32_t backward = first_backward_op(trace);
  std::vector<std::uint32_t> maps;
  for (std::uint32_t i = 0; i < gaps.size(); ++i) {
    const Gap& gap = gaps[i];
    const Buffer& buffer = trace.buffer(trace.version(gap.out).buffer);
    if (gap.crosses || (buffer.born_before && buffer.outlives)) continue;
    if (gap.release < backward && backward <= gap.due) maps.push_back(i);
  }
  return maps;
}

}  // namespace tidepool
