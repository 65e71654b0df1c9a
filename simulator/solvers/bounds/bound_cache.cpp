#include "simulator/solvers/bounds/bound_cache.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "simulator/engine/machine/machine_file.hpp"
#include "simulator/registry.hpp"

namespace tidepool {
namespace {

/// The kinds of action that a policy's option `with` restricts it to, as in "order+swap"; "" without restriction.
std::string restriction(const PolicyInfo& info, const Spec& spec) {
  const auto has_with = std::any_of(info.options.begin(), info.options.end(),
                                    [](const OptionInfo& option) { return option.name == "with"; });
  if (!has_with) return "";
  return Options{info.name, info.options, spec.options}.word("with");
}

struct Allowed {
  bool swap = false, remat = false, order = false;
};

Allowed allowed(const PolicyChain& chain) {
  Allowed all;
  for (const Spec& one : chain.policies) {
    const PolicyInfo& info = find_policy(one.name);
    const std::string only = restriction(info, one);
    const auto names = [&](const char* word) { return only.find(word) != std::string::npos; };
    const auto may = [&](const char* word) { return only.empty() || names(word); };
    all.swap |= (info.kind == PolicyKind::kSwap || info.kind == PolicyKind::kHybrid) && may("swap");
    all.remat |= (info.kind == PolicyKind::kRemat || info.kind == PolicyKind::kHybrid) && may("remat");
    all.order |= info.kind == PolicyKind::kOrder || names("order");
  }
  return all;
}

}  // namespace

std::string allowed_by(const PolicyChain& policy) {
  const auto [swap, remat, order] = allowed(policy);
  return with_text(swap, remat, order);
}

BoundQuery query_of(const Trace& trace, const RunSpec& spec) {
  const auto [swap, remat, order] = allowed(spec.policy);
  return {.trace = trace,
          .machine = spec.machine,
          .capacity = spec.capacity,
          .swap = swap,
          .remat = remat,
          .assume = spec.assume,
          .iterations = spec.steady ? 1 : spec.iterations,
          .steady = spec.steady,
          .order = order};
}

std::optional<Bound> BoundCache::find(const Trace& trace, const RunSpec& spec) {
  const BoundQuery query = query_of(trace, spec);
  // A bound depends on the machine only through the costs of swaps.
  const std::string key = fmt::format(
      "{}\n{}\n{}\n{}\n{}\n{}\n{}", trace.hash(), query.swap ? machine_file(spec.machine) : "", spec.capacity.count(),
      with_text(query.swap, query.remat, query.order), spec.assume.name, query.iterations, query.steady);
  std::promise<std::optional<Bound>> promise;
  std::shared_future<std::optional<Bound>> known;
  {
    const std::lock_guard lock{mutex_};
    const auto [found, is_new] = known_.try_emplace(key);
    if (is_new)
      found->second = promise.get_future().share();
    else
      known = found->second;
  }
  if (known.valid()) return known.get();
  try {
    promise.set_value(best_bound(query));
  } catch (...) {
    promise.set_exception(std::current_exception());
  }
  const std::lock_guard lock{mutex_};
  return known_.at(key).get();
}

}  // namespace tidepool
