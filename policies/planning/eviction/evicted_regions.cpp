#include "policies/planning/eviction/evicted_regions.hpp"

#include <algorithm>
#include <type_traits>
#include <utility>

namespace tidepool {

void EvictedRegions::start(const View& view) {
  const Trace& trace = view.trace();
  nodes_.assign(trace.versions().size(), Node{});
  for (std::size_t i = 0; i < nodes_.size(); ++i)
    nodes_[i].resident = trace.versions()[i].kind == VersionKind::kInitial;
  op_marks_.assign(trace.ops().size(), 0);
  above_.assign(trace.ops().size(), Nanos{});
  below_.assign(trace.ops().size(), Nanos{});
  mark_ = waiting_ = above_waiting_ = 0;
  waits_ = false;
  computed_.clear();
}

template <class AtOp>
void EvictedRegions::for_each_op(const Trace& trace, Side side, VersionId v, std::uint32_t end, AtOp at_op) {
  if (side == Side::kParents && trace.version(v).producer.valid()) at_op(trace.version(v).producer);
  for (const OpId op : side == Side::kParents ? trace.viewers(v) : trace.readers(v)) {
    if (op.value() >= end) break;
    at_op(op);
  }
}

template <class Inside, class AtEdge>
void EvictedRegions::walk(const Trace& trace, Side side, std::span<const VersionId> bases, std::uint32_t end,
                          Inside inside, AtEdge at_edge) {
  ++mark_;
  reached_.assign(bases.begin(), bases.end());
  for (const VersionId base : bases) nodes_[base.index()].mark = mark_;
  bool ended = false;
  for (std::size_t i = 0; i < reached_.size() && !ended; ++i)
    for_each_op(trace, side, reached_[i], end, [&](OpId op) {
      if (ended || std::exchange(op_marks_[op.index()], mark_) == mark_) return;
      const std::span uses = trace.uses(op);
      looked_at_ += static_cast<std::int64_t>(uses.size());
      for (const Use& use : uses) {
        const VersionId named = side == Side::kParents ? use.in : use.out;
        if (!named.valid()) continue;
        const VersionId v = trace.root(named);
        if (std::exchange(nodes_[v.index()].mark, mark_) == mark_) continue;
        if (nodes_[v.index()].resident) {
          at_edge(v);
        } else {
          if constexpr (std::is_void_v<std::invoke_result_t<Inside, VersionId>>)
            inside(v);
          else if (!inside(v))
            return void(ended = true);
          reached_.push_back(v);
        }
      }
    });
}

void EvictedRegions::begun(const View& view, OpId op) {
  waits_ = true;
  ++waiting_;
  viewed_ = {};
  for (const Use& use : view.trace().uses(op))
    if (use.access == Access::kView && !nodes_[view.trace().root(use.in).index()].resident)
      viewed_ = view.trace().root(use.in);
  if (!viewed_.valid()) return;
  viewed_cost_ = view.state(viewed_).cost;
  const auto ignore = [](VersionId) {};
  const auto outdate = [&](Side side) {
    return [this, side](VersionId base) { nodes_[base.index()].outdated[index(side)] = waiting_; };
  };
  walk(view.trace(), Side::kParents, {&viewed_, 1}, op.value(), ignore, outdate(Side::kChildren));
  walk(view.trace(), Side::kChildren, {&viewed_, 1}, op.value(), ignore, outdate(Side::kParents));
}

void EvictedRegions::dropped(const View& view, VersionId v) {
  Node& node = nodes_[v.index()];
  node.resident = false;
  if (!waits_ || node.sees != waiting_) return;
  walk(
      view.trace(), Side::kParents, {&v, 1}, view.op().value() + 1, [](VersionId) {},
      [&](VersionId base) { nodes_[base.index()].sees = waiting_; });
}

void EvictedRegions::computed(const View& view, std::span<const VersionId> versions) {
  for (const VersionId v : versions) {
    nodes_[v.index()].resident = true;
    if (!std::exchange(nodes_[v.index()].computed, true)) computed_.push_back(v);
  }
  if (!waits_) return;
  if (view.trace().version(versions.back()).producer == view.op())
    waits_ = false;  // the op has run
  else
    find_anew(view, versions);
}

/// While an op waits, notes that regions around computed versions are found again: from now on, they count the op's
/// outputs, and the present cost of the base that the op views.
void EvictedRegions::find_anew(const View& view, std::span<const VersionId> versions) {
  const Trace& trace = view.trace();
  const std::uint32_t end = view.op().value() + 1;
  const auto ignore = [](VersionId) {};
  ++above_waiting_;
  walk(trace, Side::kParents, trace.made(view.op()), end, ignore,
       [&](VersionId base) { nodes_[base.index()].above_waiting = above_waiting_; });
  const auto children_anew = [&](VersionId base) {
    Node& node = nodes_[base.index()];
    node.outdated[index(Side::kChildren)] = 0;
    node.sees = node.above_waiting == above_waiting_ ? waiting_ : 0;
  };
  const auto parents_anew = [&](VersionId base) { nodes_[base.index()].outdated[index(Side::kParents)] = 0; };
  std::for_each(versions.begin(), versions.end(), children_anew);
  walk(trace, Side::kParents, versions, end, ignore, children_anew);
  if (!viewed_.valid()) return;
  std::for_each(versions.begin(), versions.end(), parents_anew);
  walk(trace, Side::kChildren, versions, end, ignore, parents_anew);
}

void EvictedRegions::take_cheaper(const View& view, std::initializer_list<Side> sides, std::vector<VersionId>& out) {
  out.clear();
  // A version that lost part of its region on one side is next to the computed versions' region on the other side.
  for (const Side side : sides)
    walk(
        view.trace(), other(side), computed_, view.op().value() + 1, [](VersionId) {},
        [&](VersionId base) { out.push_back(base); });
  for (const VersionId v : computed_) nodes_[v.index()].computed = false;
  out.insert(out.end(), computed_.begin(), computed_.end());
  computed_.clear();
}

template <class Inside>
void EvictedRegions::walk_region(const View& view, Side side, VersionId v, Inside inside) {
  const Node& node = nodes_[v.index()];
  const bool all_known = !waits_ || (side == Side::kChildren && node.sees == waiting_);
  const VersionId outdated = waits_ && node.outdated[index(side)] == waiting_ ? viewed_ : VersionId{};
  walk(
      view.trace(), side, {&v, 1}, view.op().value() + (all_known ? 1 : 0),
      [&](VersionId each) { return inside(each, each == outdated ? viewed_cost_ : view.state(each).cost); },
      [](VersionId) {});
}

Nanos EvictedRegions::cost(const View& view, Side side, VersionId v) {
  Nanos sum;
  walk_region(view, side, v, [&](VersionId, Nanos each) { sum += each; });
  return sum;
}

void EvictedRegions::visit(const View& view, Side side, VersionId v,
                           const std::function<bool(VersionId, Nanos)>& inside) {
  walk_region(view, side, v, [&](VersionId each, Nanos cost) { return inside(each, cost); });
}

void EvictedRegions::find_bounds(const View& view) {
  const Trace& trace = view.trace();
  bounded_ = known_to_all(view);
  const auto least_cost = [&](VersionId v) {
    return waits_ && v == viewed_ ? std::min(viewed_cost_, view.state(v).cost) : view.state(v).cost;
  };
  for (std::size_t i = 0; i < bounded_; ++i) {
    const std::span uses = trace.uses(OpId{i});
    looked_at_ += 2 * static_cast<std::int64_t>(uses.size());
    above_[i] = {};
    for (const Use& use : uses) {
      if (!use.in.valid() || nodes_[trace.root(use.in).index()].resident) continue;
      const VersionId v = trace.root(use.in);
      const OpId producer = trace.version(v).producer;
      above_[i] = std::max(above_[i], least_cost(v) + (producer.valid() ? above_[producer.index()] : Nanos{}));
    }
  }
  for (std::size_t i = bounded_; i-- > 0;) {
    Nanos outputs, path;
    for (const VersionId v : trace.made(OpId{i})) {
      if (nodes_[v.index()].resident) continue;
      outputs += least_cost(v);
      path = std::max(path, bound(view, Side::kChildren, v));
    }
    below_[i] = outputs + path;
  }
}

Nanos EvictedRegions::bound(const View& view, Side side, VersionId v) const {
  if (side == Side::kParents) {
    const OpId producer = view.trace().version(v).producer;
    return producer.valid() ? above_[producer.index()] : Nanos{};
  }
  Nanos most;
  for (const OpId op : view.trace().readers(v)) {
    if (op.value() >= bounded_) break;
    most = std::max(most, below_[op.index()]);
  }
  return most;
}

}  // namespace tidepool
