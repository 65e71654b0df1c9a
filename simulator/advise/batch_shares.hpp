// Which parts of a step depend on its batch, and shrink with it.
#pragma once

#include <cstddef>
#include <vector>

#include "simulator/advise/step_uses.hpp"

namespace tidepool {

/// The forward and the backward pass of a step: positions [begin, end) in Trace::steps().
struct PassSpan {
  std::size_t begin = 0, end = 0;
};

/// What the passes of a step make from its batch: from buffers without a name that are there before the passes, and from
/// what a source brings. Of these, gradients of parameters, also before they are cast to the parameter's precision, keep
/// their size, and so do cuBLAS's workspaces and buffers of at most 512 bytes.
class BatchShares {
 public:
  BatchShares(const Trace& step, PassSpan passes);

  /// Whether the passes allocate the buffer in proportion to the batch.
  bool is_cut(BufferId buffer) const { return cut_[buffer.index()]; }
  /// Whether the op works on the batch.
  bool is_cut(OpId op) const { return cut_op_[op.index()]; }
  const StepUses& uses() const { return uses_; }

 private:
  void find_cut(PassSpan passes);
  void cut_workspaces(PassSpan passes);
  void spare_gradients(PassSpan passes);

  const Trace& step_;
  StepUses uses_;
  std::vector<bool> cut_;     // by buffer
  std::vector<bool> cut_op_;  // by op
};

}  // namespace tidepool
