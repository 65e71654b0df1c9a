#include "policies/planning/remat/saved.hpp"

#include <algorithm>
#include <utility>

namespace tidepool {

std::uint32_t first_backward_op(const Trace& trace) {
  for (std::size_t i = 0; i < trace.ops().size(); ++i)
    if (trace.ops()[i].phase == Phase::kBackward) return static_cast<std::uint32_t>(i);
  Bytes live, peak;
  std::uint32_t at = 0;
  for (const Event& event : trace.events()) {
    if (event.kind == EventKind::kAlloc) live += trace.buffers()[event.id].size;
    if (event.kind == EventKind::kFree) live -= trace.buffers()[event.id].size;
    if (event.kind == EventKind::kRun && live > peak) peak = live, at = event.id + 1;
  }
  return at;
}

std::vector<Bytes> live_bytes(const Trace& trace) {
  std::vector<Bytes> by_op;
  by_op.reserve(trace.ops().size());
  Bytes live;
  for (const Buffer& buffer : trace.buffers())
    if (buffer.born_before) live += buffer.size;
  for (const Event& event : trace.events()) {
    if (event.kind == EventKind::kAlloc) live += trace.buffers()[event.id].size;
    if (event.kind == EventKind::kFree) live -= trace.buffers()[event.id].size;
    if (event.kind == EventKind::kRun) by_op.push_back(live);
  }
  return by_op;
}

std::vector<Bytes> live_bytes_before(const Trace& trace) {
  std::vector<Bytes> by_op;
  by_op.reserve(trace.ops().size());
  Bytes live;
  for (const Buffer& buffer : trace.buffers())
    if (buffer.born_before) live += buffer.size;
  Bytes least = live;
  for (const Event& event : trace.events()) {
    if (event.kind == EventKind::kAlloc) live += trace.buffers()[event.id].size;
    if (event.kind == EventKind::kFree) live -= trace.buffers()[event.id].size;
    least = std::min(least, live);
    if (event.kind == EventKind::kRun) by_op.push_back(std::exchange(least, live));
  }
  return by_op;
}

std::vector<std::uint32_t> ends_of_versions(const Trace& trace) {
  const auto ops = static_cast<std::uint32_t>(trace.ops().size());
  std::vector<std::uint32_t> end(trace.versions().size(), ops), freed(trace.buffers().size(), ops);
  std::uint32_t op = 0;
  for (const Event& event : trace.events()) {
    if (event.kind == EventKind::kRun) op = event.id + 1;
    if (event.kind == EventKind::kFree) freed[event.id] = op;
  }
  for (std::size_t i = 0; i < end.size(); ++i) end[i] = freed[trace.versions()[i].buffer.index()];
  for (const Version& version : trace.versions())
    if (version.kind != VersionKind::kView && version.parent.valid() && version.producer.valid())
      end[version.parent.index()] = std::min(end[version.parent.index()], version.producer.value());
  return end;
}

std::vector<Saved> saved_versions(const Trace& trace, std::uint32_t backward) {
  const auto ops = static_cast<std::uint32_t>(trace.ops().size());
  std::vector<bool> is_output(trace.versions().size());
  for (const VersionId v : trace.outputs()) is_output[trace.root(v).index()] = true;
  std::vector<bool> replaced(trace.versions().size());  // replaced in place in the forward phase
  for (const Version& version : trace.versions())
    if (version.kind != VersionKind::kView && version.parent.valid() && version.producer.value() < backward)
      replaced[version.parent.index()] = true;
  std::vector<Saved> all;
  for (std::uint32_t op = 0; op < std::min(backward, ops); ++op) {
    if (trace.op(OpId{op}).kind == OpKind::kSource) continue;
    for (const VersionId v : trace.made(OpId{op})) {
      if (replaced[v.index()] || trace.size(v) == Bytes{}) continue;
      Saved saved{v, op, op, is_output[v.index()] ? ops : kNever};
      const auto use = [&](OpId user) {
        if (user.value() < backward)
          saved.last_forward = std::max(saved.last_forward, user.value());
        else
          saved.first_again = std::min(saved.first_again, user.value());
      };
      for (const OpId reader : trace.readers(v)) use(reader);
      for (const OpId viewer : trace.viewers(v)) use(viewer);
      if (saved.first_again != kNever) all.push_back(saved);  // otherwise it has no use after the forward phase
    }
  }
  return all;
}

}  // namespace tidepool
