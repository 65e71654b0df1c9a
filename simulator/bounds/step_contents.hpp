// The contents of a step's buffers, and the ops that need each of them.
#pragma once

#include <cstdint>
#include <vector>

#include "traces/trace.hpp"

namespace tidepool {

/// One content of a buffer, from the op that makes it to the last op to which it may be of use. Positions count ops;
/// the end of the step has a position of its own, behind the last op, so that a step of n ops has n + 1. In a step that
/// is repeated they go on: position n + 1 + k is op k of the next iteration.
struct StepContent {
  static constexpr std::int64_t kBefore = -1;

  struct Use {
    std::int64_t position = 0;
    bool held = false;  ///< it is still there when the op has run; else the op replaces it
  };
  enum class Origin : std::uint8_t {
    kOp,      ///< an op of the step makes it, also where the iteration before did
    kBefore,  ///< it existed before the step, on the device or on the host as the plan likes
    kAlways   ///< it existed before the step and nothing ever changes it: the host has it
  };
  enum class End : std::uint8_t {
    kNone,    ///< the end of the step does not need it
    kDevice,  ///< it is there when the step ends
    kHost,    ///< it is there, or on the host
    kBegan    ///< it is there, or on the host if that is where its buffer began
  };

  VersionId version = {};
  BufferId buffer = {};
  Bytes size = {};
  Origin origin = Origin::kOp;
  OpId producer = {};          ///< an op that can run again to make it; none otherwise
  std::int64_t made = 0;       ///< position of its op; kBefore
  bool held_when_made = true;  ///< false: its op replaces it at once
  std::vector<Use> uses = {};  ///< ascending
  std::int64_t last = 0;       ///< the last position at which a plan may want to have it
  End end = End::kNone;
};

/// What of which content an op reads that runs again in the iteration in which it ran.
struct ContentInput {
  std::uint32_t content = 0;
  std::int64_t shift = 0;  ///< add to positions of the iteration: the content is older than the iteration
};

struct StepContents {
  std::int64_t positions = 0;      ///< of an iteration: one for each op, and one for the end
  std::vector<Nanos> duration;     ///< by position
  std::vector<Bytes> working_set;  ///< by position: bytes that are taken whatever the plan
  std::vector<StepContent> contents;
  std::vector<std::vector<ContentInput>> inputs;  ///< by op: what it reads, as far as plans decide about it
};

/// Of a trace with one stream, in-place writes in place. Left out are contents that no plan need keep between two ops:
/// of no bytes, never read again, or what a buffer comes with when it is allocated.
/// @param repeats  what existed before the step and outlives it is carried over from each iteration to the next
/// @param remat    contents are of use as long as ops that have read them may run again
StepContents step_contents(const Trace& trace, bool repeats, bool remat);

}  // namespace tidepool
