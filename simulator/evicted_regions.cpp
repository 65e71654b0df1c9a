#include "simulator/evicted_regions.hpp"

#include <algorithm>

namespace tidepool {
namespace {

constexpr std::array kSides{Neighbours::Side::kParents, Neighbours::Side::kChildren};

}  // namespace

void EvictedRegions::start(const View& view) {
  const Trace& trace = view.trace();
  if (!neighbours_) neighbours_.emplace(trace);
  for (auto& regions : regions_) regions.assign(trace.versions().size(), Region{});
  nodes_.assign(trace.versions().size(), Node{});
  for (std::size_t i = 0; i < nodes_.size(); ++i)
    nodes_[i].resident = trace.versions()[i].kind == VersionKind::kInitial;
  mark_ = 0;
  changed_.clear();
}

void EvictedRegions::rebuild(const View& view, Side side, VersionId base) {
  Region& region = regions_[index(side)][base.index()];
  region.inside.clear();
  region.frontier.clear();
  region.cost = {};
  ++mark_;
  mark(base);
  const auto visit = [&](VersionId v) {
    Node& node = nodes_[v.index()];
    if (node.mark == mark_) return;
    node.mark = mark_;
    if (node.resident) {
      if (!node.pinned) region.frontier.push_back(v);
    } else {
      region.inside.push_back(v);
      region.cost += view.state(v).cost;
    }
  };
  neighbours_->for_each(side, base, view.op(), visit);
  for (std::size_t i = 0; i < region.inside.size(); ++i)
    neighbours_->for_each(side, region.inside[i], view.op(), visit);
  changed_.push_back(base);
}

void EvictedRegions::absorb(const View& view, Side side, VersionId base, VersionId evicted) {
  Region& region = regions_[index(side)][base.index()];
  const Region& absorbed = regions_[index(side)][evicted.index()];
  std::erase(region.frontier, evicted);
  ++mark_;
  mark(base);
  for (const VersionId v : region.frontier) mark(v);
  for (const VersionId v : absorbed.frontier)
    if (mark(v)) region.frontier.push_back(v);
  ++mark_;
  for (const VersionId v : region.inside) mark(v);
  const auto add = [&](VersionId v) {
    if (!mark(v)) return;
    region.inside.push_back(v);
    region.cost += view.state(v).cost;
  };
  add(evicted);
  for (const VersionId v : absorbed.inside) add(v);
  changed_.push_back(base);
}

void EvictedRegions::dropped(const View& view, VersionId v) {
  nodes_[v.index()].resident = false;
  for (const Side side : kSides)
    for (const VersionId base : regions_[index(other(side))][v.index()].frontier) absorb(view, side, base, v);
  for (const Side side : kSides) regions_[index(side)][v.index()] = Region{};
}

void EvictedRegions::computed(const View& view, std::span<const VersionId> versions) {
  for (const VersionId v : versions) {
    nodes_[v.index()].resident = true;
    nodes_[v.index()].pinned = view.state(v).pinned;
  }
  for (const VersionId v : versions)
    for (const Side side : kSides) rebuild(view, side, v);
  for (const Side side : kSides) {
    affected_.clear();
    for (const VersionId v : versions) {
      const std::vector<VersionId>& frontier = regions_[index(other(side))][v.index()].frontier;
      affected_.insert(affected_.end(), frontier.begin(), frontier.end());
    }
    std::sort(affected_.begin(), affected_.end());
    affected_.erase(std::unique(affected_.begin(), affected_.end()), affected_.end());
    for (const VersionId base : affected_) rebuild(view, side, base);
  }
}

}  // namespace tidepool
