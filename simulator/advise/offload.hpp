// A step with modules whose saved tensors wait in the host's memory: what leaves, when it is back, what the copies take.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "simulator/advise/step_uses.hpp"
#include "simulator/machine/machine.hpp"
#include "traces/trace.hpp"

namespace tidepool {

/// A tensor that an op of a module saves for backward, as torch.autograd.graph.saved_tensors_hooks sees it. Positions are
/// in Trace::steps().
struct SavedTensor {
  BufferId buffer;
  std::string_view module;  ///< the innermost one around the op that saves it
  std::size_t out = 0;      ///< behind this op it is copied to the host
  std::size_t first = 0;    ///< in front of this backward op, and what is allocated for it, it is copied back
  std::size_t last = 0;     ///< behind this one the copy on the device is freed
};

/// What the hooks would be given in each module, parameters, gradients and what is smaller than `least` left out. An op
/// that saves a tensor is not recorded: a backward op that reads what a forward op of its module uses stands for it. Ops
/// side by side that do so are one that saves it once. In the order in which backward needs them. O(uses).
std::vector<SavedTensor> saved_tensors(const Trace& trace, const StepUses& uses, Bytes least);

/// A program that copies some saved tensors to the host. Both copies run on the stream of the op beside them, which
/// waits. On the device a tensor ends where nothing else holds it; what it comes back to is another buffer.
class OffloadedStep {
 public:
  /// @param saved  of saved_tensors(); those that are copied
  OffloadedStep(const Trace& trace, const StepUses& uses, std::vector<SavedTensor> saved);

  Bytes peak() const;  ///< O(steps)
  Bytes copied() const;
  Nanos copy_time(const Machine& machine) const;  ///< of all copies, both ways
  /// The changed program as a trace.
  Trace trace(const Machine& machine) const;

 private:
  void find_end(BufferId buffer, const std::vector<const SavedTensor*>& saved);

  const Trace& trace_;
  const StepUses& uses_;
  std::vector<SavedTensor> saved_;
  std::vector<std::size_t> end_;  ///< by buffer: it is freed behind the step at this position; SIZE_MAX: as it was
};

}  // namespace tidepool
