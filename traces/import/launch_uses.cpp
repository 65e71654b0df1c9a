#include "traces/import/launch_uses.hpp"

#include <algorithm>

namespace tidepool {
namespace {

using Touch = TraceBuilder::Touch;

bool writes(Access access) { return access != Access::kRead && access != Access::kView; }

/// Merges the uses by two pointers to one buffer. An equal access stays, with the better evidence. Different accesses
/// become a touch if one of them is a touch, else a read_write, with the weaker evidence.
void merge(Touch& touch, const Touch& other) {
  if (touch.access == other.access) {
    touch.evidence = std::min(touch.evidence, other.evidence);
    return;
  }
  const bool unknown = touch.access == Access::kTouch || other.access == Access::kTouch;
  touch.access = unknown ? Access::kTouch : Access::kReadWrite;
  touch.evidence = std::max(touch.evidence, other.evidence);
}

auto find_touch(auto& touches, BufferId buffer) {
  return std::find_if(touches.begin(), touches.end(), [&](const Touch& touch) { return touch.buffer == buffer; });
}

}  // namespace

LaunchUses::LaunchUses(const GpuTimeline& timeline)
    : timeline_{timeline}, ops_of_call_(timeline.calls.size()), written_(timeline.calls.size()) {
  for (const GpuOp& op : timeline.ops)
    if (op.call) ++ops_of_call_[*op.call];
}

std::vector<Touch> LaunchUses::resolve(TraceBuilder& builder, const GpuUses& uses, const Find& find) {
  std::vector<Touch> touches;
  for (std::size_t i = uses.first; i < uses.last; ++i) {
    const GpuUse& use = timeline_.uses[i];
    const std::optional<BufferId> buffer = find(use.address);
    if (!buffer) {
      const bool pointer = use.evidence != Evidence::kSchema && use.evidence != Evidence::kCopy;
      builder.losses().unknown_pointers += pointer;
      continue;
    }
    Touch touch{*buffer, use.access, use.evidence};
    const Bytes size = builder.so_far().buffers[buffer->index()].size;
    if (touch.access == Access::kWrite && use.size > 0 && Bytes{use.size} < size) touch.access = Access::kReadWrite;
    const auto same = find_touch(touches, *buffer);
    if (same == touches.end())
      touches.push_back(touch);
    else
      merge(*same, touch);
  }
  return touches;
}

void LaunchUses::settle(std::vector<Touch>& seen, const std::vector<Touch>& schema,
                        std::vector<BufferId>& written) const {
  for (Touch& touch : seen) {
    const auto said = find_touch(schema, touch.buffer);
    if (said == schema.end() || touch.access == Access::kRead) continue;
    if (std::find(written.begin(), written.end(), touch.buffer) != written.end()) continue;
    touch.access = said->access;
    touch.evidence = said->evidence;
  }
}

void LaunchUses::add_workspaces(const TraceBuilder& builder, const std::vector<Touch>& seen,
                                std::vector<Touch>& schema) {
  for (Touch touch : seen) {
    if (find_touch(schema, touch.buffer) != schema.end()) continue;
    if (builder.so_far().buffers[touch.buffer.index()].kind != BufferKind::kUnknown) continue;
    if (touch.access != Access::kRead) touch = {touch.buffer, Access::kWrite, Evidence::kInferred};
    schema.push_back(touch);
  }
}

std::vector<Touch> LaunchUses::of(TraceBuilder& builder, const GpuOp& op, const Find& find) {
  std::vector<Touch> seen = resolve(builder, op.uses, find);
  if (!op.call) return seen;
  std::vector<Touch> schema = resolve(builder, timeline_.calls[*op.call].uses, find);
  if (op.whole_call) {
    add_workspaces(builder, seen, schema);
    return schema;
  }
  std::vector<BufferId>& written = written_[*op.call];
  if (!op.uses.empty()) {
    settle(seen, schema, written);
  } else {
    seen = schema;
    for (Touch& touch : seen) {
      if (ops_of_call_[*op.call] > 1) touch.evidence = Evidence::kInferred;
      if (writes(touch.access) && std::find(written.begin(), written.end(), touch.buffer) != written.end())
        touch.access = Access::kReadWrite;
    }
  }
  for (const Touch& touch : seen)
    if (writes(touch.access) && std::find(written.begin(), written.end(), touch.buffer) == written.end())
      written.push_back(touch.buffer);
  return seen;
}

}  // namespace tidepool
