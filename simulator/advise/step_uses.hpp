// The buffers of a step with what uses them, and where the program drops its last name for one.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "traces/trace.hpp"

namespace tidepool {

/// Whether a use counts: an address among the parameters of a kernel says nothing where the framework told its uses.
bool counts(std::span<const Use> uses, const Use& use);

BufferId buffer_of(const Trace& trace, const Use& use);

/// Content that is there without the forward pass.
bool stays(BufferKind kind);

/// Made once for all calls. Positions are in Trace::steps().
class StepUses {
 public:
  struct At {
    std::size_t position = 0;
    bool writes = false;
  };
  struct Life {
    std::size_t alloc, free;  ///< positions of its steps; kNowhere: none
    std::vector<At> uses;     ///< without addresses found by chance beside the uses that the framework told
  };
  static constexpr std::size_t kNowhere = SIZE_MAX;

  explicit StepUses(const Trace& trace);
  const Life& of(BufferId buffer) const { return lives_[buffer.index()]; }

  /// Where Python drops the last name of a buffer of the forward pass that an op at `position` is the last to use there:
  /// behind the step at the result. A module's input is there until the module returns. What autocast casts of a parameter is
  /// there until autocast ends: where the last of those casts goes that backward does not need.
  std::size_t released(const Trace& trace, BufferId buffer, std::size_t position) const;

 private:
  void find_casts(const Trace& trace);

  std::vector<Life> lives_;
  std::vector<bool> is_cast_;               ///< by buffer: made of one parameter, which is no smaller
  std::vector<std::size_t> autocast_ends_;  ///< rising
};

/// The first op at or behind a position.
std::size_t next_op(const Trace& trace, std::size_t position);

}  // namespace tidepool
