#include "simulator/fit/convolution_workspaces.hpp"

#include <algorithm>
#include <functional>
#include <string_view>
#include <vector>

#include "traces/copied.hpp"

namespace tidepool {
namespace {

bool is_convolution(const Trace& trace, const Op& op) {
  const std::string_view name = trace.text(op.name);
  return name.find("onvolution") != std::string_view::npos || name.find("aten::conv") != std::string_view::npos;
}

/// An estimate from the op's two largest operands: input and output, or their gradients; with few images, weights.
Bytes workspace(const Trace& trace, OpId op) {
  std::vector<BufferId> operands;
  for (const Use& use : trace.uses(op)) operands.push_back(trace.version(use.in.valid() ? use.in : use.out).buffer);
  std::sort(operands.begin(), operands.end());
  operands.erase(std::unique(operands.begin(), operands.end()), operands.end());
  std::vector<std::int64_t> sizes;
  for (const BufferId id : operands) sizes.push_back(trace.buffer(id).size.count());
  std::sort(sizes.begin(), sizes.end(), std::greater{});
  std::int64_t bytes = 0;
  for (std::size_t i = 0; i < std::min<std::size_t>(2, sizes.size()); ++i) bytes += sizes[i];
  return Bytes{static_cast<std::int64_t>(kConvolutionWorkspace * static_cast<double>(bytes))};
}

}  // namespace

std::optional<ConvolutionWorkspaces> with_convolution_workspaces(const Trace& trace) {
  TraceBuilder builder{trace.data().streams};
  std::vector<BufferId> now(trace.buffers().size());
  const auto spec = [&](std::size_t id) { return copied(builder, trace, BufferId{id}); };
  for (std::size_t id = 0; id < now.size(); ++id)
    if (trace.buffers()[id].born_before) now[id] = builder.existing(spec(id));
  Bytes largest;
  for (const Step& step : trace.steps()) {
    if (step.kind == StepKind::kAlloc) now[step.id] = builder.alloc(spec(step.id));
    if (step.kind == StepKind::kFree) builder.free(now[step.id]);
    if (step.kind != StepKind::kRun || !is_convolution(trace, trace.ops()[step.id])) continue;
    const OpId op{step.id};
    const Bytes size = workspace(trace, op);
    builder.free(builder.alloc({.size = size, .stream = trace.op(op).stream}));
    largest = std::max(largest, size);
  }
  if (largest == Bytes{}) return {};
  builder.meta() = trace.data().meta;
  return ConvolutionWorkspaces{builder.finish(), largest};
}

}  // namespace tidepool
