#include "simulator/run.hpp"

#include <fmt/format.h>

#include <chrono>
#include <utility>

#include "simulator/engine/decisions/decision.hpp"
#include "simulator/engine/driver.hpp"
#include "simulator/ordered_step.hpp"
#include "simulator/registry.hpp"
#include "traces/base/error.hpp"
#include "traces/base/text.hpp"

namespace tidepool {
namespace {

struct Chain {
  std::vector<std::unique_ptr<Policy>> policies;
  bool may_swap = false, may_recompute = false;
};

Chain make_chain(const RunSpec& spec) {
  Chain chain;
  for (const Spec& one : spec.policy.policies) {
    const PolicyInfo& info = find_policy(one.name);
    const Options options{info.name, info.options, one.options, spec.seed};
    if (info.kind == PolicyKind::kNone) continue;
    chain.may_swap |= info.kind == PolicyKind::kSwap || info.kind == PolicyKind::kHybrid;
    chain.may_recompute |= info.kind == PolicyKind::kRemat || info.kind == PolicyKind::kHybrid;
    chain.policies.push_back(info.make(options));
  }
  if (chain.policies.size() > PolicyCalls::kMost)
    throw InputError{fmt::format("'{}' names more than {} policies", spec.policy.text, PolicyCalls::kMost)};
  return chain;
}

/// The step in the first order that a policy of the chain asks for; null: the recorded order.
std::shared_ptr<const OrderedStep> reordered(const Chain& chain, const Trace& trace, const RunSpec& spec) {
  for (const std::unique_ptr<Policy>& policy : chain.policies)
    if (std::shared_ptr<const OrderedStep> step = policy->reorder(trace, spec)) return step;
  return {};
}

Result drive(const Trace& trace, const RunSpec& spec, Nanos baseline, std::vector<std::unique_ptr<Policy>> policies,
             bool may_swap, bool keep_plan, std::optional<Nanos> matters_to, const OnDecision& tell,
             std::optional<Shortage>& shortage) {
  const PoolInfo& info = find_pool(spec.pool.name);
  const std::unique_ptr<Pool> pool = info.make(Options{info.name, info.options, spec.pool.options, spec.seed});
  Driver driver{trace, spec, baseline, *pool, policies, may_swap, keep_plan, matters_to, tell};
  Result result = driver.run();
  shortage = driver.shortage();
  return result;
}

/// The kinds of a chain decide which bound its result is compared with.
/// @throws PlanError  if a policy, as one of a plug-in, acted in a way that the kinds exclude
void check_kinds(bool may_swap, bool may_recompute, const RunSpec& spec, const Totals& totals) {
  std::string did, kind;
  if (!may_swap && totals.swap_out > Bytes{}) {
    did = fmt::format("copied {} to the host", to_text(totals.swap_out));
    kind = "swap";
  } else if (!may_recompute && totals.recompute_count > 0) {
    did = fmt::format("ran {} again", counted(totals.recompute_count, "op"));
    kind = "remat";
  } else {
    return;
  }
  throw PlanError{
      fmt::format("'{}' {}; expected a policy that is registered with the kind {} or hybrid, since the kind decides "
                  "which bound holds",
                  spec.policy.text, did, kind)};
}

}  // namespace

Result simulate(const Trace& trace, const RunSpec& spec, bool keep_plan) {
  return simulate_explained(trace, spec, keep_plan, {});
}

Result simulate_explained(const Trace& trace, const RunSpec& spec, bool keep_plan, const OnDecision& tell) {
  Chain chain = make_chain(spec);
  const auto begin = std::chrono::steady_clock::now();
  const std::shared_ptr<const OrderedStep> step = reordered(chain, trace, spec);
  if (step && tell)
    throw InputError{
        fmt::format("'{}' changes the order of ops, and decisions would name ops in the new order; expected the step "
                    "that 'tidepool order -o' writes",
                    spec.policy.text)};
  const std::chrono::nanoseconds search = std::chrono::steady_clock::now() - begin;
  std::optional<Shortage> unused;
  Result result = drive(step ? step->trace() : trace, spec, baseline_time(trace, spec), std::move(chain.policies),
                        chain.may_swap, keep_plan, {}, tell, unused);
  if (!spec.assume.replay_views)  // swap policies run views again there
    check_kinds(chain.may_swap, chain.may_recompute, spec, result.totals);
  if (!step) return result;
  result.plan_time += Nanos{search.count()};
  if (keep_plan) result.realised.order = step->order();
  return result;
}

Result simulate_under(const Trace& trace, const RunSpec& spec, std::vector<std::unique_ptr<Policy>> policies,
                      bool may_swap, bool keep_plan, std::optional<Nanos> matters_to) {
  std::optional<Shortage> unused;
  return drive(trace, spec, baseline_time(trace, spec), std::move(policies), may_swap, keep_plan, matters_to, {},
               unused);
}

std::optional<Shortage> shortage_of(const Trace& trace, const RunSpec& spec) {
  Chain chain = make_chain(spec);
  std::optional<Shortage> shortage;
  drive(trace, spec, baseline_time(trace, spec), std::move(chain.policies), chain.may_swap, false, {}, {}, shortage);
  return shortage;
}

}  // namespace tidepool
