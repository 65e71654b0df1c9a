#include "simulator/studies/fit/convolution_workspaces.hpp"

#include <algorithm>
#include <functional>
#include <string_view>
#include <vector>

namespace tidepool {
namespace {

bool is_convolution(const Trace& trace, const Op& op) {
  const std::string_view name = trace.text(op.name);
  return name.find("onvolution") != std::string_view::npos || name.find("aten::conv") != std::string_view::npos;
}

/// An estimate from the sizes of the op's two largest operands. These are input and output, or their gradients; with
/// few images the weights may be among them.
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

Convolutions convolutions_of(const Trace& trace) {
  Convolutions found;
  for (std::size_t id = 0; id < trace.ops().size(); ++id) {
    if (!is_convolution(trace, trace.ops()[id])) continue;
    found.any = true;
    found.largest_workspace = std::max(found.largest_workspace, workspace(trace, OpId{id}));
  }
  return found;
}

}  // namespace tidepool
