// A network as a chain of stages, and orders in which a chain can be reversed with little memory.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "traces/quantity.hpp"

namespace tidepool {

/// One way to run a stage such that its backward step can follow: what it keeps, and what both take.
struct StageOption {
  Nanos first;          ///< forward, for the first time
  Nanos again;          ///< forward, once more: what it saves and hands on
  Nanos alone;          ///< likewise, when the next stage has gone backward: only what is still needed
  Nanos backward;       ///< the backward step
  Bytes saved;          ///< kept until the backward step has run, with the stage's output
  Bytes forward_peak;   ///< while it runs forward, besides its input: what it saves and what it needs on the way
  Bytes backward_peak;  ///< while it runs backward, besides its input: what is saved, gradients, and what it needs
};

/// A stage reads the output of the stage before it, and in its backward step also what it saved.
struct Stage {
  Nanos first;       ///< forward keeping nothing, for the first time
  Nanos again;       ///< likewise, once more: only what it hands on
  Bytes output;      ///< what it hands to the next stage
  Bytes sweep_peak;  ///< while it runs forward and keeps nothing, besides its input, with its output
  Bytes gradient;    ///< what is there, besides all that stages up to this one have made, when its backward step begins
  std::vector<StageOption> options;  ///< at least one
};

/// Stage 0 first. The input of stage 0 and what lives as long as the step take no memory here.
struct Chain {
  std::vector<Stage> stages;

  std::size_t size() const { return stages.size(); }
  /// Bytes of a stage's input.
  Bytes input(std::size_t stage) const { return stage == 0 ? Bytes{} : stages[stage - 1].output; }
};

enum class ChainVerb : std::uint8_t {
  kSweep,       ///< forward; keeps nothing, and lets its input go unless a stage before it has saved it
  kCheckpoint,  ///< forward; keeps its input
  kSave,        ///< forward; keeps its input and what `option` saves
  kBackward,    ///< the backward step; lets go what was saved for it, and its input unless the stage before saved it
};

struct ChainStep {
  ChainVerb verb = ChainVerb::kSave;
  std::uint32_t stage = 0;
  std::uint32_t option = 0;  ///< of kSave
  bool operator==(const ChainStep&) const = default;
};

/// Steps in their order. Each stage goes backward once, the last first.
using ChainSequence = std::vector<ChainStep>;

struct ChainCost {
  Nanos time;
  Bytes peak;
  bool operator==(const ChainCost&) const = default;
};

/// What a sequence takes, found by going through it; nothing if a step lacks its input or what its stage should have
/// saved, or if not every stage goes backward. O(steps).
std::optional<ChainCost> cost_of(const Chain& chain, const ChainSequence& sequence);

/// The sequence that saves everything, each stage with its first option.
ChainSequence save_all(const Chain& chain);

}  // namespace tidepool
