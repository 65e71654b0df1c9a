// A step in which tensors that modules save for backward are in host memory until backward, with the times of the
// copies.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "simulator/machine.hpp"
#include "simulator/studies/advise/step_uses.hpp"
#include "traces/trace.hpp"

namespace tidepool {

/// A tensor that an op of a module saves for backward, as torch.autograd.graph.saved_tensors_hooks gets it. Positions
/// are in Trace::steps().
struct SavedTensor {
  BufferId buffer;
  std::string_view module;  ///< the innermost one around the op that saves it
  std::size_t out = 0;      ///< it is copied to the host after this op
  std::size_t first = 0;    ///< it is copied back before this backward op and the allocations for it
  std::size_t last = 0;     ///< the copy on the device is freed after this op
};

/// The tensors that the hooks would get in each module, without parameters, gradients and tensors smaller than `least`.
/// Traces do not record which op saves a tensor. A tensor counts as saved if a backward op reads a buffer that a
/// forward op of the same module uses; adjacent backward ops that read the same buffer count once. Ordered by
/// the first read in backward. O(uses), times the uses of one buffer at worst.
std::vector<SavedTensor> saved_tensors(const Trace& trace, const StepUses& uses, Bytes least);

/// A program that copies some saved tensors to the host. A copy out runs on the stream of the op that saves the
/// tensor, directly after this op; a copy back on the stream of the op that reads it, directly before that op. On the
/// device a tensor is freed as soon as nothing else holds it; the copy back fills a new buffer.
class OffloadedStep {
 public:
  /// @param saved  the tensors of saved_tensors() that are copied
  OffloadedStep(const Trace& trace, const StepUses& uses, std::vector<SavedTensor> saved);

  Bytes peak() const;                             ///< O(steps)
  Bytes copied() const;                           ///< to the host; as many come back
  Nanos copy_time(const Machine& machine) const;  ///< sum of all copies, both ways
  /// The changed program as a trace.
  Trace trace(const Machine& machine) const;

 private:
  void find_end(BufferId buffer, const std::vector<const SavedTensor*>& saved);

  const Trace& trace_;
  const StepUses& uses_;
  std::vector<SavedTensor> saved_;
  std::vector<std::size_t> end_;  ///< by buffer: it is freed after the step at this position; SIZE_MAX: as before
};

}  // namespace tidepool
