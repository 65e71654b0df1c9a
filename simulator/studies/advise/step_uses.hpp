// Facts about a step that advice needs: its buffers with their uses and the last references to them, its memory in the
// allocator's blocks, and its modules that are changed together.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "traces/step/module_calls.hpp"
#include "traces/trace.hpp"

namespace tidepool {

/// Whether a use counts. An address among a kernel's parameters does not, if the framework reports the kernel's uses.
bool counts(std::span<const Use> uses, const Use& use);

BufferId buffer_of(const Trace& trace, const Use& use);

/// Whether the content can outlive an iteration: parameters, gradients and optimizer states.
bool stays(BufferKind kind);

/// Lifetimes and uses of all buffers, made once for all calls. Positions are in Trace::steps().
class StepUses {
 public:
  struct At {
    std::size_t position = 0;
    bool writes = false;  ///< a known write; a guess does not count
  };
  struct Life {
    std::size_t alloc, free;  ///< positions of its steps; kNowhere: none
    std::vector<At> uses;     ///< the uses for which counts() is true
  };
  static constexpr std::size_t kNowhere = SIZE_MAX;

  explicit StepUses(const Trace& trace);
  const Life& of(BufferId buffer) const { return lives_[buffer.index()]; }
  const BackwardOps& backward() const { return backward_; }

  /// Whether the op at a position computes from parameters alone, as the ops with which FSDP gathers the parameters of
  /// a module. An op without an operand does not, but for aten::empty.
  bool from_parameters(std::size_t position) const { return from_parameters_[position]; }
  /// Whether parameters are gathered from other ranks into the buffer. Who gathers them says when they end.
  bool gathered(BufferId buffer) const { return gathered_[buffer.index()]; }

  /// The step after which Python drops the last reference to a buffer of the forward pass whose last use there is the
  /// op at `position`. A module's input lives until the module returns. A cast that autocast makes of a parameter lives
  /// until autocast ends; the free of the last cast that backward does not need marks this end in the trace.
  std::size_t released(const Trace& trace, BufferId buffer, std::size_t position) const;

 private:
  void find_casts(const Trace& trace);
  void find_ops_from_parameters(const Trace& trace);

  std::vector<Life> lives_;
  BackwardOps backward_;
  std::vector<bool> from_parameters_;       ///< by position
  std::vector<bool> gathered_;              ///< by buffer
  std::vector<bool> is_cast_;               ///< by buffer: it was made from one parameter and is no larger
  std::vector<std::size_t> autocast_ends_;  ///< rising
};

/// The position of the first op at or after a position.
std::size_t next_op(const Trace& trace, std::size_t position);

/// The largest sum of blocks that PyTorch's allocator, with its default settings, gives to the buffers of a repeated
/// step, as torch.cuda.max_memory_allocated() returns it. A block has a multiple of 512 bytes; a large block is not
/// divided if at most 1 MiB would be left.
Bytes allocated_peak(const Trace& step);

/// Families as indices into `paths`: modules whose paths differ in numbers only, and modules of equal depth. No module
/// lies in another one of its family.
std::vector<std::vector<std::size_t>> module_families(const std::vector<std::string>& paths);

}  // namespace tidepool
