#include "policies/planning/remat/chain.hpp"

#include <algorithm>

namespace tidepool {
namespace {

/// The content of memory during a sequence.
class ChainState {
 public:
  explicit ChainState(const Chain& chain)
      : chain_{chain},
        output_{std::vector<bool>(chain.size())},
        saved_(chain.size()),
        ran_(chain.size()),
        left_{chain.size()} {}

  /// @return  false if the step is impossible
  bool apply(const ChainStep& step) {
    if (step.stage >= left_ || !has_input(step.stage)) return false;
    const Stage& stage = chain_.stages[step.stage];
    if (step.verb == ChainVerb::kBackward) return reverse(step.stage);
    if (step.verb == ChainVerb::kSave) {
      if (step.option >= stage.options.size() || saved_[step.stage]) return false;
      const StageOption& option = stage.options[step.option];
      need(option.forward_peak + gradient());
      cost_.time += !ran_[step.stage] ? option.first : step.stage + 1 == left_ ? option.alone : option.again;
      ran_[step.stage] = true;
      drop_output(step.stage);  // the output is now one of the saved values
      saved_[step.stage] = step.option;
      held_ += option.saved;
      return true;
    }
    need(stage.sweep_peak + gradient());
    cost_.time += ran_[step.stage] ? stage.again : stage.first;
    ran_[step.stage] = true;
    if (!has_output(step.stage)) {
      output_[step.stage] = true;
      held_ += stage.output;
    }
    if (step.verb == ChainVerb::kSweep && step.stage > 0) drop_output(step.stage - 1);
    return true;
  }

  bool done() const { return left_ == 0; }
  const ChainCost& cost() const { return cost_; }

 private:
  bool has_output(std::size_t stage) const { return output_[stage] || saved_[stage]; }
  bool has_input(std::size_t stage) const { return stage == 0 || has_output(stage - 1); }
  /// Bytes of gradients while the remaining stages run forward again.
  Bytes gradient() const { return chain_.stages[left_ - 1].gradient; }
  void need(Bytes besides) { cost_.peak = std::max(cost_.peak, held_ + besides); }
  void drop_output(std::size_t stage) {
    if (output_[stage]) held_ -= chain_.stages[stage].output;
    output_[stage] = false;
  }
  bool reverse(std::size_t index) {
    if (index + 1 != left_ || !saved_[index]) return false;
    const StageOption& option = chain_.stages[index].options[*saved_[index]];
    held_ -= option.saved;
    need(option.backward_peak);
    cost_.time += option.backward;
    saved_[index].reset();
    if (index > 0) drop_output(index - 1);
    --left_;
    return true;
  }

  const Chain& chain_;
  std::vector<bool> output_;                         // by stage: whether its output is kept apart from saved values
  std::vector<std::optional<std::uint32_t>> saved_;  // by stage: the option that it saved
  std::vector<bool> ran_;                            // by stage
  std::size_t left_;                                 // stages whose backward step has not run
  Bytes held_;
  ChainCost cost_;
};

}  // namespace

std::optional<ChainCost> cost_of(const Chain& chain, const ChainSequence& sequence) {
  ChainState state{chain};
  for (const ChainStep& step : sequence)
    if (state.done() || !state.apply(step)) return {};
  if (!state.done()) return {};
  return state.cost();
}

ChainSequence save_all(const Chain& chain) {
  ChainSequence sequence;
  const auto size = static_cast<std::uint32_t>(chain.size());
  for (std::uint32_t i = 0; i < size; ++i) sequence.push_back({ChainVerb::kSave, i, 0});
  for (std::uint32_t i = size; i > 0; --i) sequence.push_back({ChainVerb::kBackward, i - 1, 0});
  return sequence;
}

}  // namespace tidepool
