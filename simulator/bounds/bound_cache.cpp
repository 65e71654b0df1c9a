#include "simulator/bounds/bound_cache.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "simulator/machine/machine_file.hpp"
#include "simulator/registry.hpp"

namespace tidepool {
namespace {

/// What one policy of a chain restricts itself to: "swap", "remat", or "" for whatever its kind does.
std::string restriction(const PolicyInfo& info, const Spec& spec) {
  const auto has_with = std::any_of(info.options.begin(), info.options.end(),
                                    [](const OptionInfo& option) { return option.name == "with"; });
  if (!has_with) return "";
  return Options{info.name, info.options, spec.options}.word("with");
}

struct Allowed {
  bool swap = false, remat = false;
};

Allowed allowed(const PolicyChain& chain) {
  Allowed all;
  for (const Spec& one : chain.policies) {
    const PolicyInfo& info = find_policy(one.name);
    const std::string only = restriction(info, one);
    all.swap |= (info.kind == PolicyKind::kSwap || info.kind == PolicyKind::kHybrid) && only != "remat";
    all.remat |= (info.kind == PolicyKind::kRemat || info.kind == PolicyKind::kHybrid) && only != "swap";
  }
  return all;
}

}  // namespace

std::string allowed_by(const PolicyChain& policy) {
  const auto [swap, remat] = allowed(policy);
  return with_text(swap, remat);
}

BoundQuery query_of(const Trace& trace, const RunSpec& spec) {
  const auto [swap, remat] = allowed(spec.policy);
  return {.trace = trace,
          .machine = spec.machine,
          .capacity = spec.capacity,
          .swap = swap,
          .remat = remat,
          .assume = spec.assume,
          .iterations = spec.steady ? 1 : spec.iterations,
          .steady = spec.steady};
}

std::optional<Bound> BoundCache::find(const Trace& trace, const RunSpec& spec) {
  const BoundQuery query = query_of(trace, spec);
  // What swaps cost is the machine's; nothing else is.
  const std::string key = fmt::format(
      "{}\n{}\n{}\n{}\n{}\n{}\n{}", trace.hash(), query.swap ? machine_file(spec.machine) : "", spec.capacity.count(),
      with_text(query.swap, query.remat), spec.assume.name, query.iterations, query.steady);
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
