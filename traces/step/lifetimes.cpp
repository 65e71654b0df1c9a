#include "traces/step/lifetimes.hpp"

#include <algorithm>

#include "traces/step/rebuild.hpp"

namespace tidepool {

Lifetimes::Lifetimes(const Trace& trace) : trace_{trace}, counts_(trace.buffers().size()) {
  const auto ops = static_cast<std::uint32_t>(trace.ops().size());
  std::vector<std::vector<std::uint32_t>> needed(ops);
  const auto add = [&](std::uint32_t op, std::uint32_t buffer) {
    needed[op].push_back(buffer);
    ++counts_[buffer];
  };
  for (std::uint32_t op = 0; op < ops; ++op) {
    std::vector<std::uint32_t> buffers;
    for (const Use& use : trace.uses(OpId{op}))
      buffers.push_back(trace.version(use.in.valid() ? use.in : use.out).buffer.value());
    std::sort(buffers.begin(), buffers.end());
    buffers.erase(std::unique(buffers.begin(), buffers.end()), buffers.end());
    for (const std::uint32_t buffer : buffers) add(op, buffer);
  }
  const std::vector<std::uint32_t> used = counts_;
  std::vector<std::uint32_t> born(trace.buffers().size());  // by buffer: the op that runs next when it is allocated
  std::uint32_t next = 0;
  const auto live_without_use = [&](std::uint32_t buffer) {
    if (used[buffer] > 0 || ops == 0) return;
    for (std::uint32_t op = std::min(born[buffer], ops - 1); op < std::max(next, std::min(born[buffer] + 1, ops)); ++op)
      add(op, buffer);
  };
  for (const Event& event : trace.events()) {
    if (event.kind == EventKind::kRun) next = event.id + 1;
    if (event.kind == EventKind::kAlloc) born[event.id] = next;
    if (event.kind == EventKind::kFree) live_without_use(event.id);
  }
  for (std::uint32_t buffer = 0; buffer < counts_.size(); ++buffer) {
    const Buffer& spec = trace.buffers()[buffer];
    if (spec.born_before && spec.outlives) always_ += spec.size;
    if (!spec.born_before && spec.outlives) live_without_use(buffer);
  }
  first_.push_back(0);
  for (const std::vector<std::uint32_t>& buffers : needed) {
    for (const std::uint32_t buffer : buffers)
      if (const Buffer& spec = trace.buffers()[buffer]; !spec.born_before || !spec.outlives) needed_.push_back(buffer);
    first_.push_back(static_cast<std::uint32_t>(needed_.size()));
  }
}

std::vector<Bytes> Lifetimes::load(std::span<const std::uint32_t> order) const {
  std::vector<std::uint32_t> left = counts_;
  std::vector<Bytes> load;
  Bytes live = always_;
  for (std::size_t buffer = 0; buffer < counts_.size(); ++buffer)
    if (const Buffer& spec = trace_.buffers()[buffer]; spec.born_before && !spec.outlives) live += spec.size;
  for (const std::uint32_t op : order) {
    for (const std::uint32_t buffer : needed_by(op))
      if (const Buffer& spec = trace_.buffers()[buffer]; !spec.born_before && left[buffer] == counts_[buffer])
        live += spec.size;
    load.push_back(live);
    for (const std::uint32_t buffer : needed_by(op))
      if (const Buffer& spec = trace_.buffers()[buffer]; --left[buffer] == 0 && !spec.outlives) live -= spec.size;
  }
  return load;
}

Bytes Lifetimes::peak(std::span<const std::uint32_t> order) const {
  const std::vector<Bytes> all = load(order);
  return all.empty() ? trace_.ideal_peak() : *std::max_element(all.begin(), all.end());
}

Trace Lifetimes::in_order(std::span<const std::uint32_t> order, const std::string& rule) const {
  Rebuild to{trace_};
  to.meta()["order"] = rule;
  std::vector<std::uint32_t> left = counts_;
  for (const std::uint32_t op : order) {
    for (const std::uint32_t buffer : needed_by(op))
      if (!trace_.buffers()[buffer].born_before && left[buffer] == counts_[buffer]) to.alloc(BufferId{buffer});
    to.run(OpId{op});
    for (const std::uint32_t buffer : needed_by(op))
      if (--left[buffer] == 0 && !trace_.buffers()[buffer].outlives) to.free(BufferId{buffer});
  }
  return to.finish();
}

}  // namespace tidepool
