#include "simulator/solvers/bounds/bound.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

#include "simulator/ordered_step.hpp"
#include "traces/step/foreach.hpp"

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

}  // namespace tidepool
