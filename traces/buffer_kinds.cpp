#include "traces/buffer_kinds.hpp"

#include <array>
#include <string>
#include <utility>
#include <vector>

namespace tidepool {
namespace {

constexpr std::size_t kForward = static_cast<std::size_t>(Phase::kForward);
constexpr std::size_t kBackward = static_cast<std::size_t>(Phase::kBackward);
constexpr std::size_t kOptimizer = static_cast<std::size_t>(Phase::kOptimizer);

struct Usage {
  OpId first, last;
  std::array<bool, 4> used_in{};  ///< by Phase
  bool first_writes = false;
  bool written_later = false;
  std::size_t ops = 0;  ///< number of ops that ran from its alloc to its free; meaningless without both
};

std::vector<Usage> usage_of(const Trace& trace) {
  std::vector<Usage> usage(trace.buffers().size());
  for (std::size_t i = 0; i < trace.ops().size(); ++i) {
    const OpId op{i};
    for (const Use& use : trace.uses(op)) {
      const VersionId named = use.in.valid() ? use.in : use.out;
      Usage& buffer = usage[trace.version(trace.root(named)).buffer.index()];
      const bool writes = use.access != Access::kRead && use.access != Access::kView;
      if (!buffer.first.valid()) {
        buffer.first = op;
        buffer.first_writes = use.access == Access::kWrite;
      } else if (op != buffer.first) {
        buffer.written_later = buffer.written_later || writes;
      }
      buffer.last = op;
      buffer.used_in[static_cast<std::size_t>(trace.op(op).phase)] = true;
    }
  }
  std::size_t ops = 0;
  for (const Event& event : trace.events()) {
    ops += event.kind == EventKind::kRun;
    if (event.kind == EventKind::kAlloc) usage[event.id].ops -= ops;
    if (event.kind == EventKind::kFree) usage[event.id].ops += ops;
  }
  return usage;
}

BufferKind kind_of(const Trace& trace, const Buffer& buffer, const Usage& usage) {
  const bool lasting = buffer.born_before || buffer.outlives;
  if (!usage.first.valid()) return !lasting && usage.ops <= 1 ? BufferKind::kWorkspace : BufferKind::kUnknown;
  const Op& first = trace.op(usage.first);
  const bool elsewhere = usage.used_in[kForward] || usage.used_in[kBackward] || usage.used_in[0];
  if (lasting && usage.used_in[kOptimizer]) {
    if (usage.used_in[kForward]) return BufferKind::kParameter;
    if (!elsewhere) return BufferKind::kOptimizerState;
  }
  if (first.phase == Phase::kBackward && usage.used_in[kOptimizer]) return BufferKind::kGradient;
  if (first.kind == OpKind::kCopy && trace.text(first.name).ends_with("HtoD") && usage.first_writes &&
      !usage.written_later)
    return BufferKind::kInput;
  if (first.phase == Phase::kForward && usage.used_in[kBackward]) return BufferKind::kActivation;
  if (!lasting && (usage.first == usage.last || !elsewhere)) return BufferKind::kWorkspace;
  if (!lasting && first.phase == Phase::kForward) return BufferKind::kActivation;
  if (!lasting && first.phase == Phase::kBackward) return BufferKind::kGradient;
  return BufferKind::kUnknown;
}

}  // namespace

Trace with_inferred_kinds(Trace trace) {
  std::array<bool, 4> phases{};
  for (const Op& op : trace.ops()) phases[static_cast<std::size_t>(op.phase)] = true;
  if (!phases[kForward] || !phases[kBackward]) return trace;
  const std::vector<Usage> usage = usage_of(trace);
  TraceData data = trace.data();
  std::size_t found = 0;
  for (std::size_t i = 0; i < data.buffers.size(); ++i) {
    Buffer& buffer = data.buffers[i];
    if (buffer.kind != BufferKind::kUnknown) continue;
    buffer.kind = kind_of(trace, buffer, usage[i]);
    found += buffer.kind != BufferKind::kUnknown;
  }
  if (found == 0) return trace;
  data.meta["inferred_kinds"] = std::to_string(found);
  return Trace{std::move(data)};
}

}  // namespace tidepool
