// The calls of modules in the forward passes of a step.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "traces/trace.hpp"

namespace tidepool {

/// A forward pass and the backward pass that follows, as positions in Trace::steps().
struct Pass {
  std::size_t forward_end = 0;   ///< after the last forward op
  std::size_t backward_end = 0;  ///< where the next forward pass begins, else the end of the trace
};

/// One call of a module. Its forward ops are adjacent.
struct ModuleCall {
  std::string module;      ///< dotted path
  std::size_t first = 0;   ///< position in Trace::steps() of the first allocation for its first op
  std::size_t behind = 0;  ///< position after its last forward op
  Pass pass;               ///< the pass with its backward ops; may be later than the pass with its forward ops
};

/// The texts of a list in the trace's metadata; none if there is no list with this key.
std::optional<std::vector<std::string>> texts_of(const Trace& trace, const std::string& key);

/// Whether a dotted path is the module or lies in it.
bool lies_in(std::string_view path, std::string_view module);

/// The backward ops of each module of a step, found once for all calls.
class BackwardOps {
 public:
  explicit BackwardOps(const Trace& trace);
  /// Positions in Trace::steps(), rising, of the backward ops that lie in the module, within [first, end).
  std::span<const std::size_t> within(std::string_view module, std::size_t first, std::size_t end) const;

 private:
  std::map<std::string_view, std::vector<std::size_t>> by_module_;
};

/// The position in Trace::steps() after the call of the module in which the op at `position` runs.
std::size_t behind_call(const Trace& trace, std::string_view module, std::size_t position);

/// The position of the first allocation for the op at `position`.
std::size_t allocations_for(const Trace& trace, std::size_t position);

/// Whether a step has more than one backward pass: several forward passes with a backward pass each, or several
/// backward passes of one graph. Between two backward passes of one graph, a recording has ops of the optimizer phase:
/// at least the op that makes the gradient of the loss.
bool has_several_backward_passes(const Trace& trace);

/// The calls of the modules whose ops are adjacent in each forward pass of a step, ordered by name and position.
/// Several calls in a row look like one. Each micro-batch is a pass of its own, and so is each part of a GAN's step.
/// Left out are modules that run again in backward, since they are checkpointed already; containers, which are never
/// called; and modules outside of the model, such as a loss: no path of a named parameter has the same first part. If
/// the recording does not name containers, a module whose ops all lie in its numbered modules is taken for a container.
std::vector<ModuleCall> module_calls(const Trace& trace);

}  // namespace tidepool
