#include "policies/planning/search/plan_answer.hpp"

#include <algorithm>
#include <iterator>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "policies/planning/search/counted_pool.hpp"
#include "policies/planning/search/run_places.hpp"
#include "simulator/policy.hpp"
#include "simulator/run.hpp"
#include "simulator/whole_plan.hpp"

namespace tidepool {
namespace {

/// Executes a whole plan that a search has found.
class BestPlan final : public Policy, public WholePlanner {
 public:
  using Places = std::vector<FollowedPool::Place>;

  /// @param places  of the plan, request by request; if none, the run's pool chooses them
  BestPlan(std::shared_ptr<const Plan> plan, std::shared_ptr<const Places> places)
      : plan_{std::move(plan)}, places_{std::move(places)} {}

  std::unique_ptr<Pool> bring_pool() override {
    if (!places_) return {};
    return std::make_unique<FollowedPool>(places_, std::make_shared<std::size_t>());
  }
  std::optional<Plan> whole_plan() override { return *plan_; }

 private:
  std::shared_ptr<const Plan> plan_;
  std::shared_ptr<const Places> places_;
};

using Places = BestPlan::Places;

bool takes_place(const Action& action) {
  return action.verb == Verb::kAlloc || action.verb == Verb::kSwapIn || action.verb == Verb::kScratch;
}

/// Whether only pools decide on such actions. The run's pool decides on them again when the plan is followed.
bool is_of_pool(const Action& action) {
  return action.verb == Verb::kReserve || action.verb == Verb::kRelease || action.verb == Verb::kMap ||
         action.verb == Verb::kUnmap;
}

/// The places of a plan, request by request. Those of its cycle are repeated for all iterations that may run.
Places places_of(const Plan& plan, int most_iterations) {
  Places places;
  std::vector<std::size_t> begins{0};  // by iteration
  for (const Action& action : plan.actions) {
    if (action.verb == Verb::kNext) begins.push_back(places.size());
    if (takes_place(action)) places.push_back({action.offset, action.size});
  }
  const std::size_t last = places.size(), known = begins.size(),
                    first = begins[known - std::min(static_cast<std::size_t>(plan.cycle), known)];
  // The run begins one more iteration than it completes.
  for (std::size_t i = known; i < static_cast<std::size_t>(most_iterations) + 1; ++i)
    for (std::size_t each = first; each < last; ++each) places.push_back(FollowedPool::Place{places[each]});
  return places;
}

}  // namespace

Plan repeated_as_asked(const Trace& trace, const RunSpec& spec, Plan plan) {
  const auto is_next = [](const Action& action) { return action.verb == Verb::kNext; };
  if (!spec.steady || std::any_of(plan.actions.begin(), plan.actions.end(), is_next)) return plan;
  const auto begins_resident = [&](const Action& action) {
    if (action.verb != Verb::kAlloc) return false;
    const Buffer& buffer = trace.buffer(trace.version(VersionId{action.subject}).buffer);
    return buffer.born_before && buffer.outlives;
  };
  const std::vector<Action> once = plan.actions;
  plan.actions.push_back({.verb = Verb::kNext, .before = OpId{0}, .subject = 1});
  std::copy_if(once.begin(), once.end(), std::back_inserter(plan.actions),
               [&](const Action& action) { return !begins_resident(action); });
  return plan;
}

PlanAnswer answer_of_plan(const Trace& trace, const RunSpec& spec, Plan realised, bool swap) {
  std::erase_if(realised.actions, is_of_pool);
  const auto plan = std::make_shared<const Plan>(std::move(realised));
  const auto places =
      granule_of(spec.pool) ? std::make_shared<const Places>(places_of(*plan, spec.iterations)) : nullptr;
  const auto make = [plan, places] { return std::make_unique<BestPlan>(plan, places); };
  std::vector<std::unique_ptr<Policy>> policies;
  policies.push_back(make());
  return {make, simulate_under(trace, spec, std::move(policies), swap)};
}

}  // namespace tidepool
