#include "simulator/solvers/bounds/recompute_model.hpp"

#include <algorithm>
#include <numeric>

#include "simulator/solvers/bounds/op_bounds.hpp"

namespace tidepool {

StreamId RecomputeModel::busiest_stream(const Trace& trace) {
  std::vector<Nanos> work(trace.data().streams.size());
  for (const Op& op : trace.ops()) work[op.stream.index()] += op.duration;
  return StreamId{static_cast<std::size_t>(std::max_element(work.begin(), work.end()) - work.begin())};
}

Nanos RecomputeModel::work() const { return Nanos{std::accumulate(costs_.begin(), costs_.end(), std::int64_t{0})}; }

RecomputeModel::RecomputeModel(const Trace& trace, const Assumptions& assume, StreamId stream)
    : trace_{trace}, costs_(trace.ops().size()), items_(trace.versions().size()) {
  for (std::size_t i = 0; i < costs_.size(); ++i)
    if (trace.ops()[i].stream == stream) costs_[i] = trace.ops()[i].duration.count();
  find_items(assume);
  find_needs();
  taken_ = pinned_beside(trace, assume);
  first_held_.assign(1, 0);
  for (std::size_t i = 0; i <= trace.ops().size(); ++i) {
    WorkingSet set;
    if (i < trace.ops().size()) {
      set = working_set(trace, assume, OpId{i});
    } else {
      set.held = handed_on(trace);
      for (const VersionId v : set.held) set.bytes += trace.size(v);
    }
    taken_[i] += set.bytes;
    held_.insert(held_.end(), set.held.begin(), set.held.end());
    first_held_.push_back(static_cast<std::uint32_t>(held_.size()));
  }
}

std::int32_t RecomputeModel::next_need(VersionId v, std::int32_t instant) const {
  const std::span readers = trace_.readers(v);
  const auto next = std::upper_bound(readers.begin(), readers.end(), instant, [](std::int32_t at, OpId reader) {
    return at < static_cast<std::int32_t>(reader.value());
  });
  if (next != readers.end()) return static_cast<std::int32_t>(next->value());
  return item(v).needed == ops() ? ops() : kNever;
}

void RecomputeModel::find_items(const Assumptions& assume) {
  for (std::size_t i = 0; i < items_.size(); ++i) {
    const Version& version = trace_.versions()[i];
    if (version.kind == VersionKind::kView) continue;
    Item& item = items_[i];
    item.bytes = trace_.size(VersionId{i}).count();
    if (version.kind == VersionKind::kInitial) {
      if (trace_.buffer(version.buffer).born_before && !assume.pin_sources) item.made = kBeforeAll;
      continue;
    }
    item.replaceable = trace_.op(version.producer).kind != OpKind::kSource;
    if (item.replaceable || !assume.pin_sources) item.made = static_cast<std::int32_t>(version.producer.value());
  }
  for (std::size_t i = 0; i < trace_.ops().size(); ++i) {
    const std::span made = trace_.made(OpId{i});
    std::int64_t bytes = 0;
    for (const VersionId v : made) bytes += item(v).bytes;
    for (const VersionId v : made) {
      const auto scaled = static_cast<Int128>(costs_[i]) * item(v).bytes;
      if (bytes > 0) items_[v.index()].cost = static_cast<std::int64_t>(scaled / bytes);
    }
  }
}

void RecomputeModel::find_needs() {
  first_input_.assign(1, 0);
  for (std::size_t i = 0; i < trace_.ops().size(); ++i) {
    const auto first = static_cast<std::ptrdiff_t>(inputs_.size());
    for (const Use& use : trace_.uses(OpId{i})) {
      if (!use.in.valid()) continue;
      const VersionId root = trace_.root(use.in);
      if (item(root).made == kNever) continue;
      inputs_.push_back(root);
      items_[root.index()].needed = static_cast<std::int32_t>(i);
    }
    std::sort(inputs_.begin() + first, inputs_.end());
    inputs_.erase(std::unique(inputs_.begin() + first, inputs_.end()), inputs_.end());
    first_input_.push_back(static_cast<std::uint32_t>(inputs_.size()));
  }
  for (const VersionId named : trace_.outputs()) items_[trace_.root(named).index()].needed = ops();
}

}  // namespace tidepool
