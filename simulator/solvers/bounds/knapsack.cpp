#include "simulator/solvers/bounds/knapsack.hpp"

#include <algorithm>
#include <bit>
#include <numeric>

namespace tidepool {
namespace {

using RootItem = RecomputeModel::Item;

/// Prefix sums of bytes and costs over ranks that are added and removed. O(log n) each.
class RankedSums {
 public:
  explicit RankedSums(std::size_t ranks) : bytes_(ranks + 1), cost_(ranks + 1) {}

  void add(std::size_t rank, std::int64_t bytes, std::int64_t cost) {
    for (std::size_t i = rank + 1; i < bytes_.size(); i += i & -i) bytes_[i] += bytes, cost_[i] += cost;
    total_ += bytes;
  }
  std::int64_t total() const { return total_; }

  struct Prefix {
    std::size_t ranks = 0;  ///< number of ranks in the prefix
    std::int64_t bytes = 0, cost = 0;
  };
  /// The longest prefix with fewer than `limit` bytes.
  Prefix below(std::int64_t limit) const {
    Prefix prefix;
    for (std::size_t step = std::bit_floor(bytes_.size() - 1); step > 0; step /= 2)
      if (const std::size_t i = prefix.ranks + step; i < bytes_.size() && prefix.bytes + bytes_[i] < limit)
        prefix = {i, prefix.bytes + bytes_[i], prefix.cost + cost_[i]};
    return prefix;
  }

 private:
  std::vector<std::int64_t> bytes_, cost_;
  std::int64_t total_ = 0;
};

/// Replaceable versions that may be absent between uses, with the least cost per byte first.
std::vector<VersionId> by_density(const RecomputeModel& model) {
  std::vector<VersionId> order;
  for (std::size_t i = 0; i < model.items().size(); ++i) {
    const RootItem& item = model.items()[i];
    if (item.made != RecomputeModel::kNever && item.replaceable && item.bytes > 0 && item.needed > item.made)
      order.push_back(VersionId{i});
  }
  std::stable_sort(order.begin(), order.end(), [&](VersionId a, VersionId b) {
    const RootItem &x = model.item(a), &y = model.item(b);
    return static_cast<Int128>(x.cost) * y.bytes < static_cast<Int128>(y.cost) * x.bytes;
  });
  return order;
}

}  // namespace

std::vector<Bytes> irreplaceable_bytes(const RecomputeModel& model) {
  const auto ops = static_cast<std::size_t>(model.ops());
  std::vector<std::int64_t> change(ops + 2);
  const auto lasts = [](const RootItem& item) {
    return item.made != RecomputeModel::kNever && !item.replaceable && item.needed > item.made;
  };
  for (const RootItem& item : model.items())
    if (lasts(item)) {
      change[static_cast<std::size_t>(std::max(item.made, 0))] += item.bytes;
      change[static_cast<std::size_t>(item.needed)] -= item.bytes;
    }
  std::vector<Bytes> taken(ops + 1);
  std::int64_t lasting = 0;
  for (std::size_t i = 0; i <= ops; ++i) {
    lasting += change[i];
    const auto instant = static_cast<std::int32_t>(i);
    taken[i] = model.taken(instant) + Bytes{lasting};
    for (const VersionId v : model.held(instant))
      if (lasts(model.item(v)) && model.item(v).needed > instant) taken[i] -= Bytes{model.item(v).bytes};
  }
  return taken;
}

std::vector<std::int64_t> knapsack_bounds(const RecomputeModel& model, Bytes capacity) {
  const std::vector<VersionId> order = by_density(model);
  const std::vector<Bytes> irreplaceable = irreplaceable_bytes(model);
  std::vector<std::size_t> rank(model.items().size(), order.size());
  std::vector<std::uint32_t> endings(order.size());
  for (std::size_t r = 0; r < order.size(); ++r) rank[order[r].index()] = r;
  std::iota(endings.begin(), endings.end(), 0u);
  std::sort(endings.begin(), endings.end(), [&](std::uint32_t a, std::uint32_t b) {
    return model.item(order[a]).needed < model.item(order[b]).needed;
  });
  RankedSums absent{order.size()};  // versions that are needed later and may be absent
  std::vector<bool> counted(order.size());
  const auto count = [&](std::size_t r, bool in) {
    if (r >= order.size() || counted[r] == in) return;
    const RootItem& item = model.item(order[r]);
    counted[r] = in;
    absent.add(r, in ? item.bytes : -item.bytes, in ? item.cost : -item.cost);
  };
  std::vector<std::int64_t> bounds(static_cast<std::size_t>(model.ops()));
  auto ending = endings.begin();
  for (std::int32_t i = 0; i < model.ops(); ++i) {
    for (; ending != endings.end() && model.item(order[*ending]).needed <= i; ++ending) count(*ending, false);
    for (const VersionId v : model.held(i)) count(rank[v.index()], false);
    const std::int64_t room = (capacity - irreplaceable[static_cast<std::size_t>(i)]).count();
    if (const std::int64_t excess = absent.total() - room; excess > 0) {
      const RankedSums::Prefix prefix = absent.below(std::min(excess, absent.total()));
      std::int64_t bound = prefix.cost;
      if (prefix.ranks < order.size()) {
        const RootItem& last = model.item(order[prefix.ranks]);
        const std::int64_t part = std::min(excess, absent.total()) - prefix.bytes;
        bound += static_cast<std::int64_t>(static_cast<Int128>(last.cost) * part / last.bytes);
      }
      bounds[static_cast<std::size_t>(i)] = bound;
    }
    for (const VersionId v : model.held(i))
      if (model.item(v).needed > i) count(rank[v.index()], true);
    for (const VersionId v : model.trace().made(OpId{static_cast<std::uint32_t>(i)}))
      if (model.item(v).needed > i) count(rank[v.index()], true);
  }
  return bounds;
}

}  // namespace tidepool
