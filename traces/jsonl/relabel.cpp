#include "traces/jsonl/relabel.hpp"

#include <utility>

namespace tidepool {

Trace relabel(const Trace& trace, const std::vector<std::uint32_t>& buffers,
              const std::vector<std::uint32_t>& versions) {
  TraceData data = trace.data();
  const auto buffer = [&](BufferId id) { return BufferId{buffers[id.index()]}; };
  const auto version = [&](VersionId id) { return id.valid() ? VersionId{versions[id.index()]} : id; };
  for (std::size_t i = 0; i < buffers.size(); ++i) data.buffers[buffers[i]] = trace.buffers()[i];
  for (std::size_t i = 0; i < versions.size(); ++i) {
    const Version& old = trace.versions()[i];
    data.versions[versions[i]] = {buffer(old.buffer), old.kind, old.producer, version(old.parent), version(old.root)};
  }
  for (Use& use : data.uses) use.in = version(use.in), use.out = version(use.out);
  for (Event& event : data.events) {
    if (event.kind == EventKind::kForget) event.id = versions[event.id];
    if (event.kind == EventKind::kAlloc || event.kind == EventKind::kFree) event.id = buffers[event.id];
  }
  for (VersionId& output : data.outputs) output = version(output);
  return Trace{std::move(data)};
}

}  // namespace tidepool
