// The contents of a step's buffers, and the ops that need each of them.
#pragma once

#include <cstdint>
#include <vector>

#include "traces/trace.hpp"

namespace tidepool {

/// One content of a buffer, from the op that makes it to the last op that may use it. Positions count ops. The end of
/// the step has a position of its own after the last op, so a step of n ops has n + 1. In a repeated step the positions
/// go on: position n + 1 + k is op k of the next iteration.
struct StepContent {
  static constexpr std::int64_t kBefore = -1;

  struct Use {
    std::int64_t position = 0;
    bool held = false;  ///< the content still exists after the op; false: the op replaces it
  };
  enum class Origin : std::uint8_t {
    kOp,      ///< an op of the step makes it, perhaps in the previous iteration
    kBefore,  ///< it existed before the step; the plan chooses whether on the device or on the host
    kAlways   ///< in a repeated step: it existed before the step and no op changes it, so the host has it
  };
  enum class End : std::uint8_t {
    kNone,    ///< the end of the step does not need it
    kDevice,  ///< it is on the device when the step ends
    kHost,    ///< it is on the device or on the host
    kBegan    ///< it is on the device, or on the host if its buffer began there
  };

  VersionId version = {};
  BufferId buffer = {};
  Bytes size = {};
  Origin origin = Origin::kOp;
  OpId producer = {};          ///< an op that can run again to make it, or none
  std::int64_t made = 0;       ///< position of the op that makes it, or kBefore
  bool held_when_made = true;  ///< false: the op that makes it also replaces it
  std::vector<Use> uses = {};  ///< ascending
  std::int64_t last = 0;       ///< the last position at which a plan may need it
  End end = End::kNone;
};

/// A content that an op reads if it runs again in its own iteration.
struct ContentInput {
  std::uint32_t content = 0;
  std::int64_t shift = 0;  ///< added to positions of the iteration: the content is from an earlier iteration
};

struct StepContents {
  std::int64_t positions = 0;      ///< number of positions in an iteration: one for each op, and one for the end
  std::vector<Nanos> duration;     ///< by position
  std::vector<Bytes> working_set;  ///< by position: bytes in use under every plan
  std::vector<StepContent> contents;
  std::vector<std::vector<ContentInput>> inputs;  ///< by op: contents that it reads and that are in `contents`
};

/// The contents of a trace with one stream, without copy-on-write. It leaves out contents that no plan need keep
/// between two ops: those without bytes, those that no later op reads and that are no outputs, and initial contents of
/// buffers that the step allocates.
/// @param repeats  content that exists before and after the step is carried over from each iteration to the next
/// @param remat    contents may be used as long as ops that read them may run again
StepContents step_contents(const Trace& trace, bool repeats, bool remat);

}  // namespace tidepool
