// A network as a chain of stages, and orders in which a chain can be reversed with little memory.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "traces/base/quantity.hpp"

namespace tidepool {

/// One way to run a stage so that its backward step can follow, with the time and memory of both.
struct StageOption {
  Nanos first;          ///< forward, for the first time
  Nanos again;          ///< forward again: only the ops of its saved values and its output
  Nanos alone;          ///< forward again after the next stage's backward step: only the ops still needed
  Nanos backward;       ///< the backward step
  Bytes saved;          ///< kept until the backward step has run, with the stage's output
  Bytes forward_peak;   ///< most bytes during forward, without its input: saved and temporary values
  Bytes backward_peak;  ///< most bytes during backward, without its input: saved values, gradients, temporaries
};

/// A stage reads the output of the stage before it. Its backward step also reads the values that it saved.
struct Stage {
  Nanos first;                       ///< forward keeping nothing, for the first time
  Nanos again;                       ///< forward again: only the ops that make its output
  Bytes output;                      ///< the input of the next stage
  Bytes sweep_peak;                  ///< most bytes during forward that keeps nothing: its output, without its input
  Bytes gradient;                    ///< bytes live when its backward step begins, besides values of this and earlier
                                     ///< stages
  std::vector<StageOption> options;  ///< at least one
};

/// Stages in order, stage 0 first. The input of stage 0 and buffers that live as long as the step are not counted.
struct Chain {
  std::vector<Stage> stages;

  std::size_t size() const { return stages.size(); }
  /// Bytes of a stage's input.
  Bytes input(std::size_t stage) const { return stage == 0 ? Bytes{} : stages[stage - 1].output; }
};

enum class ChainVerb : std::uint8_t {
  kSweep,       ///< forward; keeps only its output: drops its input unless the stage before saved it
  kCheckpoint,  ///< forward; keeps its input and its output
  kSave,        ///< forward; keeps its input and, with its output, the values that `option` saves
  kBackward,    ///< the backward step; drops its saved values, and its input unless the stage before saved it
};

struct ChainStep {
  ChainVerb verb = ChainVerb::kSave;
  std::uint32_t stage = 0;
  std::uint32_t option = 0;  ///< of kSave
  bool operator==(const ChainStep&) const = default;
};

/// Steps in their order. Each stage has one backward step, the last stage first.
using ChainSequence = std::vector<ChainStep>;

struct ChainCost {
  Nanos time;
  Bytes peak;
  bool operator==(const ChainCost&) const = default;
};

/// Time and memory of a sequence, found by executing it. None if a step is impossible (it lacks its input or the saved
/// values of its stage, saves twice, or is out of order), or if a stage has no backward step. O(steps).
std::optional<ChainCost> cost_of(const Chain& chain, const ChainSequence& sequence);

/// The sequence that saves everything, each stage with its first option.
ChainSequence save_all(const Chain& chain);

}  // namespace tidepool
