#include "simulator/hybrid/mixed_draft.hpp"

#include <algorithm>
#include <memory>

#include "simulator/remat/saved.hpp"
#include "simulator/swap/trials.hpp"

namespace tidepool {
namespace {

class Follow final : public MixedDraftPolicy {
 public:
  Follow(const std::vector<Gap>& gaps, const MixedPlan& plan) : gaps_{gaps}, plan_{plan} {}
  std::vector<Action> plan(const Trace& trace, const Machine&, Bytes) override { return adopt(trace, gaps_, plan_); }

 private:
  const std::vector<Gap>& gaps_;
  const MixedPlan& plan_;
};

}  // namespace

std::vector<Action> MixedDraftPolicy::adopt(const Trace& trace, const std::vector<Gap>& gaps, const MixedPlan& plan) {
  std::vector<Action> drops;
  for (const std::uint32_t i : plan.dropped)
    drops.push_back({Verb::kDrop, OpId{gaps[i].release + std::size_t{1}}, gaps[i].out.value(), {}, {}});
  std::stable_sort(drops.begin(), drops.end(), [](const Action& a, const Action& b) { return a.before < b.before; });
  drops_ = Draft{std::move(drops)};
  return draft_of(gaps, plan.swapped, trace.ops().size());
}

Result judge(const Trace& trace, const RunSpec& spec, const std::vector<Gap>& gaps, const MixedPlan& plan,
             bool keep_plan) {
  return judge(trace, spec, std::make_unique<Follow>(gaps, plan), keep_plan);
}

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
