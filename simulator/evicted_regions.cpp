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
  resident_.assign(trace.versions().size(), false);
  for (std::size_t i = 0; i < trace.versions().size(); ++i)
    resident_[i] = trace.versions()[i].kind == VersionKind::kInitial;
  marks_.assign(trace.versions().size(), 0);
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
  for (VersionId from = base;;) {
    neighbours_->for_each(side, from, view.op(), [&](VersionId v) {
      if (!mark(v)) return;
      if (resident_[v.index()]) {
        region.frontier.push_back(v);
      } else {
        region.inside.push_back(v);
        region.cost += view.state(v).cost;
        stack_.push_back(v);
      }
    });
    if (stack_.empty()) break;
    from = stack_.back();
    stack_.pop_back();
  }
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
  resident_[v.index()] = false;
  for (const Side side : kSides)
    for (const VersionId base : regions_[index(other(side))][v.index()].frontier) absorb(view, side, base, v);
  for (const Side side : kSides) regions_[index(side)][v.index()] = Region{};
}

void EvictedRegions::computed(const View& view, std::span<const VersionId> versions) {
  for (const VersionId v : versions) resident_[v.index()] = true;
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
