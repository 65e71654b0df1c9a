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

/// The least number of forward runs to reverse `stages` stages of equal time with memory for the inputs of `slots`
/// stages besides the first. The last forward run before each backward step saves the values of that step and is not
/// counted:
///   R(1, s) = 0,  R(l, 0) = l (l - 1) / 2,  R(l, s) = min over k in [1, l) of k + R(l - k, s - 1) + R(k, s)
/// which is r l - C(c + r, r - 1) with c = slots + 1 and r least such that C(c + r, c) >= l.
/// Paper: Griewank and Walther, "Algorithm 799: revolve", ACM TOMS 26(1), 2000.
std::int64_t revolve_sweeps(std::size_t stages, std::size_t slots);

/// The order that takes revolve_sweeps() forward runs. O(stages^2 * slots).
ChainSequence revolve(std::size_t stages, std::size_t slots);

/// Checkpoints at the inputs of the stages `starts` (ascending; stage 0 is always a checkpoint). One sweep keeps these
/// and the whole last segment, which is reversed. Then each other segment, from back to front, runs again from its
/// checkpoint, is kept whole, and is reversed.
ChainSequence in_segments(std::size_t stages, const std::vector<std::size_t>& starts);

/// As in_segments(), with `checkpoints` checkpoints (at least 1) at equal distances; but each segment is divided again
/// in the same way, down to single stages. Paper: Chen et al., "Training Deep Nets with Sublinear Memory Cost", 2016,
/// section 4.4.
ChainSequence in_nested_segments(std::size_t stages, std::size_t checkpoints);

}  // namespace tidepool
