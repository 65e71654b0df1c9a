#include "policies/remat/auto_sac/selective.hpp"

#include <algorithm>
#include <boost/pending/disjoint_sets.hpp>
#include <cmath>
#include <map>

#include "policies/planning/remat/knapsack.hpp"

namespace tidepool {
namespace {

/// A group of ops with one decision, and whether the rules fix this decision.
struct Group : SelectiveGroup {
  bool must_keep = false, must_repeat = false;
};

std::vector<Group> groups_of(const SelectiveRegion& region) {
  const std::vector<SelectiveOp>& ops = region.ops;
  boost::disjoint_sets_with_storage<> sets{ops.size()};
  std::optional<std::size_t> random;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    if (ops[i].updates) sets.union_set(i, *ops[i].updates);
    if (!ops[i].random || region.keep_random) continue;
    if (random) sets.union_set(i, *random);
    random = i;
  }
  std::map<std::size_t, Group> by_set;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    Group& group = by_set[sets.find_set(i)];
    group.ops.push_back(i);
    group.memory += ops[i].memory;
    group.runtime += ops[i].runtime;
    group.must_keep |= ops[i].updates == i || (ops[i].random && region.keep_random);
    group.must_repeat |= ops[i].view;
  }
  std::vector<Group> groups;
  for (auto& [set, group] : by_set) groups.push_back(std::move(group));
  std::sort(groups.begin(), groups.end(), [](const Group& a, const Group& b) { return a.ops.front() < b.ops.front(); });
  return groups;
}

void add(SelectiveGroup& to, const SelectiveGroup& group) {
  to.memory += group.memory;
  to.runtime += group.runtime;
  to.ops.insert(to.ops.end(), group.ops.begin(), group.ops.end());
}

}  // namespace

std::optional<std::vector<bool>> keep_best(const SelectiveRegion& region, Bytes limit) {
  const std::vector<Group> groups = groups_of(region);
  std::vector<KnapsackItem> items;
  for (const Group& group : groups) {
    if (group.must_keep && group.must_repeat) return {};
    if (group.must_keep) limit -= group.memory;
    const bool free = !group.must_keep && !group.must_repeat;
    items.push_back(free ? KnapsackItem{group.memory, group.runtime} : KnapsackItem{});
  }
  if (limit < Bytes{}) return {};
  const std::vector<bool> taken = knapsack_exactly(items, limit);
  std::vector<bool> kept(region.ops.size());
  for (std::size_t g = 0; g < groups.size(); ++g)
    for (const std::size_t op : groups[g].ops) kept[op] = taken[g] || groups[g].must_keep;
  return kept;
}

SelectiveOrder order_of(const SelectiveRegion& region) {
  SelectiveOrder order;
  for (const Group& group : groups_of(region)) {
    if (group.must_repeat)
      add(order.always, group);
    else if (group.must_keep)
      add(order.never, group);
    else
      order.given_up.push_back(group);
  }
  const auto most_first = [](const SelectiveGroup& a, const SelectiveGroup& b) {
    if (a.runtime == Nanos{} || b.runtime == Nanos{}) return a.runtime < b.runtime;
    return Int128{a.memory.count()} * b.runtime.count() > Int128{b.memory.count()} * a.runtime.count();
  };
  std::stable_sort(order.given_up.begin(), order.given_up.end(), most_first);
  return order;
}

std::vector<bool> keep_greedily(const SelectiveRegion& region, Bytes limit) {
  const SelectiveOrder order = order_of(region);
  std::vector<bool> kept(region.ops.size(), true);
  const auto give_up = [&](const SelectiveGroup& group) {
    for (const std::size_t op : group.ops) kept[op] = false;
  };
  Bytes rest = order.never.memory;
  for (const SelectiveGroup& group : order.given_up) rest += group.memory;
  give_up(order.always);
  for (const SelectiveGroup& group : order.given_up) {
    if (rest + order.never.memory <= limit) break;
    give_up(group);
    rest -= group.memory;
  }
  return kept;
}

Bytes share_of(const SelectiveRegion& region, double budget) {
  Bytes sum;
  for (const SelectiveOp& op : region.ops) sum += op.memory;
  return Bytes{static_cast<std::int64_t>(std::ceil(budget * static_cast<double>(sum.count())))};
}

}  // namespace tidepool
