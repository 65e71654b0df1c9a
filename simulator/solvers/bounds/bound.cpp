#include "simulator/solvers/bounds/bound.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>

#include "simulator/engine/machine/machine_file.hpp"
#include "simulator/ordered_step.hpp"
#include "simulator/registry.hpp"
#include "traces/step/dependencies.hpp"

namespace tidepool {
namespace {

std::vector<BoundInfo>& registry() {
  static std::vector<BoundInfo> all;
  return all;
}

/// Whether `b` is a better bound than `a`.
bool worse(const Bound& a, const Bound& b) {
  if (a.feasible != b.feasible) return a.feasible;
  if (!a.feasible) return a.name < b.name;  // "working-set", the simplest proof, has the last name
  if (a.makespan != b.makespan) return a.makespan < b.makespan;
  return a.name > b.name;
}

}  // namespace

RegisterBound::RegisterBound(BoundInfo info) { registry().push_back(std::move(info)); }

std::vector<const BoundInfo*> all_bounds() {
  std::vector<const BoundInfo*> all;
  for (const BoundInfo& info : registry()) all.push_back(&info);
  std::sort(all.begin(), all.end(), [](const BoundInfo* a, const BoundInfo* b) { return a->name < b->name; });
  return all;
}

namespace {

bool holds(const BoundInfo& info, const BoundQuery& query) {
  return (!query.order || info.order) && (!query.swap || info.swap) && (!query.remat || info.remat) &&
         (!query.steady || info.steady);
}

bool takes_long(const BoundInfo& info, const BoundQuery& query) {
  return info.most_ops && !query.time_limit && query.trace.ops().size() > *info.most_ops;
}

std::vector<Bound> bounds_of(const BoundQuery& query, BoundEffort effort,
                             const std::function<void(const Bound&)>& tell) {
  std::vector<Bound> found;
  std::vector<const BoundInfo*> infos = all_bounds();
  std::stable_partition(infos.begin(), infos.end(), [](const BoundInfo* info) { return info->quick; });
  for (const BoundInfo* info : infos) {
    if (!holds(*info, query) || takes_long(*info, query)) continue;
    if (!info->quick && effort == BoundEffort::kQuick) continue;
    std::optional<Bound> bound = info->compute(query);
    if (!bound) continue;
    bound->name = info->name;
    if (!bound->feasible) bound->limited_by = Resource::kMemory;
    if (bound->with.empty()) bound->with = with_text(info->swap, info->remat);
    if (query.order) bound->with = bound->with.empty() ? "order" : "order," + bound->with;
    if (tell) tell(*bound);
    found.push_back(std::move(*bound));
  }
  return best_last(std::move(found));
}

}  // namespace

std::vector<std::string> bounds_without_limit(const BoundQuery& query) {
  std::vector<std::string> names;
  for (const BoundInfo* info : all_bounds())
    if (holds(*info, query) && takes_long(*info, query)) names.push_back(info->name);
  return names;
}

std::vector<Bound> best_last(std::vector<Bound> bounds) {
  std::sort(bounds.begin(), bounds.end(), worse);
  return bounds;
}

std::vector<Bound> compute_bounds(const BoundQuery& query, BoundEffort effort,
                                  const std::function<void(const Bound&)>& found) {
  if (!query.order) return bounds_of(query, effort, found);
  const bool reorders = can_be_reordered(query.trace) && query.assume.name.empty();
  const Trace divided = reorders ? split_foreach(query.trace) : query.trace;
  return bounds_of({.trace = divided,
                    .machine = query.machine,
                    .capacity = query.capacity,
                    .swap = query.swap,
                    .remat = query.remat,
                    .assume = query.assume,
                    .iterations = query.iterations,
                    .steady = query.steady,
                    .order = reorders,
                    .time_limit = query.time_limit},
                   effort, found);
}

std::optional<Bound> best_bound(const BoundQuery& query, BoundEffort effort) {
  std::vector<Bound> found = compute_bounds(query, effort);
  if (found.empty()) return std::nullopt;
  return std::move(found.back());
}

std::string with_text(bool swap, bool remat, bool order) {
  std::string text = order ? "order" : "";
  for (const auto& [may, word] : {std::pair{swap, "swap"}, std::pair{remat, "remat"}})
    if (may) text += (text.empty() ? "" : ",") + std::string{word};
  return text;
}

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

Bytes least_free_capacity(BoundQuery query) {
  query.capacity = kNoLimit;
  const std::optional<Bound> unlimited = best_bound(query);
  const Nanos free = unlimited ? unlimited->makespan : Nanos{};
  Bytes costs, costs_nothing = ideal_peak(query.trace, query.assume);
  for (int step = 0; step < 20 && costs_nothing - costs > Bytes{1}; ++step) {
    query.capacity = costs + (costs_nothing - costs) / 2;
    const std::optional<Bound> bound = best_bound(query);
    const bool lost = bound && (!bound->feasible || bound->makespan > free);
    (lost ? costs : costs_nothing) = query.capacity;
  }
  return costs + Bytes{1};
}

}  // namespace tidepool
