#include "policies/planning/remat/chain.hpp"

#include <algorithm>
#include <limits>

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

ChainStep step(ChainVerb verb, std::size_t stage) { return {verb, static_cast<std::uint32_t>(stage), 0}; }

/// Keeps the input of stage `first` and runs forward to the input of `behind`.
void sweep(std::size_t first, std::size_t behind, ChainSequence& out) {
  out.push_back(step(ChainVerb::kCheckpoint, first));
  for (std::size_t i = first + 1; i < behind; ++i) out.push_back(step(ChainVerb::kSweep, i));
}

void save_and_reverse(std::size_t first, std::size_t behind, ChainSequence& out) {
  for (std::size_t i = first; i < behind; ++i) out.push_back(step(ChainVerb::kSave, i));
  for (std::size_t i = behind; i > first; --i) out.push_back(step(ChainVerb::kBackward, i - 1));
}

/// R(l, s) and its best k, for all l up to `stages` and s up to `slots`.
class RevolveTable {
 public:
  RevolveTable(std::size_t stages, std::size_t slots) : width_{slots + 1} {
    sweeps_.assign((stages + 1) * width_, 0);
    split_.assign(sweeps_.size(), 0);
    for (std::size_t l = 2; l <= stages; ++l)
      for (std::size_t s = 0; s <= slots; ++s) fill(l, s);
  }

  std::int64_t sweeps(std::size_t l, std::size_t s) const { return sweeps_[l * width_ + s]; }
  std::size_t split(std::size_t l, std::size_t s) const { return split_[l * width_ + s]; }

 private:
  void fill(std::size_t l, std::size_t s) {
    std::int64_t least = std::numeric_limits<std::int64_t>::max();
    // Without a slot, the input of stage l - 1 is in memory only while that stage is reversed.
    for (std::size_t k = s == 0 ? l - 1 : 1; k < l; ++k) {
      const std::int64_t behind = s == 0 ? 0 : sweeps(l - k, s - 1);
      const std::int64_t all = static_cast<std::int64_t>(k) + behind + sweeps(k, s);
      if (all >= least) continue;
      least = all;
      split_[l * width_ + s] = k;
    }
    sweeps_[l * width_ + s] = least;
  }

  std::size_t width_;
  std::vector<std::int64_t> sweeps_;
  std::vector<std::size_t> split_;
};

void append(const RevolveTable& table, std::size_t first, std::size_t length, std::size_t slots, ChainSequence& out) {
  if (length == 1) return save_and_reverse(first, first + 1, out);
  const std::size_t k = table.split(length, slots);
  sweep(first, first + k, out);
  append(table, first + k, length - k, slots == 0 ? 0 : slots - 1, out);
  append(table, first, k, slots, out);
}

void append_nested(std::size_t first, std::size_t length, std::size_t checkpoints, ChainSequence& out) {
  if (length == 1) return save_and_reverse(first, first + 1, out);
  const std::size_t parts = std::min(length, checkpoints + 1);
  const auto start = [&](std::size_t part) { return first + length * part / parts; };
  for (std::size_t part = 0; part + 1 < parts; ++part) sweep(start(part), start(part + 1), out);
  for (std::size_t part = parts; part > 0; --part)
    append_nested(start(part - 1), start(part) - start(part - 1), checkpoints, out);
}

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

std::int64_t revolve_sweeps(std::size_t stages, std::size_t slots) {
  if (stages == 0) return 0;
  return RevolveTable{stages, slots}.sweeps(stages, slots);
}

ChainSequence revolve(std::size_t stages, std::size_t slots) {
  ChainSequence out;
  if (stages > 0) append(RevolveTable{stages, slots}, 0, stages, slots, out);
  return out;
}

ChainSequence in_segments(std::size_t stages, const std::vector<std::size_t>& starts) {
  std::vector<std::size_t> bounds{0};
  for (const std::size_t start : starts)
    if (start > bounds.back() && start < stages) bounds.push_back(start);
  bounds.push_back(stages);
  ChainSequence out;
  for (std::size_t i = 0; i + 2 < bounds.size(); ++i) sweep(bounds[i], bounds[i + 1], out);
  for (std::size_t i = bounds.size() - 1; i > 0; --i) save_and_reverse(bounds[i - 1], bounds[i], out);
  return out;
}

ChainSequence in_nested_segments(std::size_t stages, std::size_t checkpoints) {
  ChainSequence out;
  if (stages > 0) append_nested(0, stages, std::max<std::size_t>(checkpoints, 1), out);
  return out;
}

}  // namespace tidepool
