#include "policies/planning/search/remat_candidate.hpp"

#include <algorithm>

#include "simulator/registry.hpp"
#include "simulator/solvers/bounds/recompute_cut.hpp"

namespace tidepool {

const std::vector<bool>& CandidateMaker::kept(const Candidate::Cut& cut, Bytes capacity) {
  const Bytes left = capacity - model_.taken(cut.instant);
  const auto room = static_cast<std::int64_t>(cut.share * static_cast<double>(std::max(left, Bytes{}).count()));
  const auto [found, added] = kept_.try_emplace({cut.instant, room});
  std::vector<bool>& keep = found->second;
  if (!added) return keep;
  keep.assign(model_.items().size(), false);
  RecomputeCut search{model_, cut.instant};
  search.bound(room);
  const RecomputeCut::Choice choice = search.choice();
  if (!choice.known) keep.assign(keep.size(), search.needed_bytes() <= room);
  for (const VersionId v : choice.resident) keep[v.index()] = true;
  return keep;
}

std::unique_ptr<Policy> CandidateMaker::make(const Candidate& candidate, Bytes capacity) {
  if (!candidate.policy.empty()) {
    const PolicyInfo& info = find_policy(candidate.policy);
    return info.make(Options{info.name, info.options, {}, seed_});
  }
  std::shared_ptr<KeepPlan> plan;
  if (!candidate.cuts.empty()) plan = std::make_shared<KeepPlan>();
  for (const Candidate::Cut& cut : candidate.cuts)
    plan->instants.push_back({static_cast<std::uint32_t>(cut.instant), kept(cut, capacity)});
  return std::make_unique<DropByNextUse>(candidate.formula, plan, candidate.weights);
}

}  // namespace tidepool
