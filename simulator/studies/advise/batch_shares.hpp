// The buffers and ops of a step that depend on its batch and shrink with it.
#pragma once

#include <cstddef>
#include <vector>

#include "simulator/studies/advise/step_uses.hpp"

namespace tidepool {

/// The forward and the backward pass of a step: positions [begin, end) in Trace::steps().
struct PassSpan {
  std::size_t begin = 0, end = 0;
};

/// The ops of the passes that work on the batch, and the buffers that they make from it. The batch is in the outputs of
/// sources, and in the unnamed buffers that exist before the passes and are no parameter, gradient or optimizer state.
/// Some buffers made from it keep their size: gradients of parameters, even before the cast to the parameter's
/// precision; cuBLAS's workspaces; buffers of at most 512 bytes.
class BatchShares {
 public:
  BatchShares(const Trace& step, PassSpan passes);

  /// Whether the passes allocate the buffer in proportion to the batch.
  bool is_cut(BufferId buffer) const { return cut_[buffer.index()]; }
  /// Whether the op works on the batch.
  bool is_cut(OpId op) const { return cut_op_[op.index()]; }
  /// The first op that picks or adds up rows of the batch by an index that is of the batch, too; none if there is none.
  OpId joining_op() const { return joining_op_; }
  const StepUses& uses() const { return uses_; }

 private:
  void find_cut(PassSpan passes);
  void cut_workspaces(PassSpan passes);
  void spare_gradients(PassSpan passes);

  const Trace& step_;
  StepUses uses_;
  OpId joining_op_;
  std::vector<bool> cut_;     // by buffer
  std::vector<bool> cut_op_;  // by op
};

}  // namespace tidepool
