#include "policies/planning/remat/rotor.hpp"

#include <algorithm>
#include <numeric>

namespace tidepool {
namespace {

/// The greatest common divisor of all sizes: slots of this size need no rounding.
std::int64_t common_divisor(const Chain& chain) {
  std::int64_t divisor = 0;
  const auto add = [&](Bytes size) { divisor = std::gcd(divisor, size.count()); };
  for (const Stage& stage : chain.stages) {
    for (const Bytes size : {stage.output, stage.sweep_peak, stage.gradient}) add(size);
    for (const StageOption& o : stage.options)
      for (const Bytes size : {o.saved, o.forward_peak, o.backward_peak}) add(size);
  }
  return divisor;
}

}  // namespace

Rotor::Rotor(const Chain& chain, Bytes most, int slots) : size_{chain.size()}, slots_{std::max(slots, 1)} {
  slot_ = std::max({(most.count() + slots_ - 1) / slots_, common_divisor(chain), std::int64_t{1}});
  slots_ = (most.count() + slot_ - 1) / slot_;
  const auto in_slots = [&](Bytes size) { return (size.count() + slot_ - 1) / slot_; };
  sweep_first_.assign(1, 0);
  sweep_again_.assign(1, 0);
  for (std::size_t i = 0; i < size_; ++i) {
    const Stage& stage = chain.stages[i];
    sweep_first_.push_back(sweep_first_.back() + static_cast<double>(stage.first.count()));
    sweep_again_.push_back(sweep_again_.back() + static_cast<double>(stage.again.count()));
    input_.push_back(in_slots(chain.input(i)));
    sweep_peak_.push_back(in_slots(stage.sweep_peak));
    gradient_.push_back(in_slots(stage.gradient));
    std::vector<Option>& options = options_.emplace_back();
    for (const StageOption& o : stage.options)
      options.push_back({static_cast<double>((o.first + o.backward).count()),
                         static_cast<double>((o.again + o.backward).count()),
                         static_cast<double>((o.alone + o.backward).count()), in_slots(o.saved),
                         in_slots(o.forward_peak), in_slots(o.backward_peak)});
  }
  table_.assign(size_ * size_ * static_cast<std::size_t>(slots_ + 1), kImpossible);
  for (std::size_t length = 1; length <= size_; ++length)
    for (std::size_t i = 0; i + length <= size_; ++i) fill(i, i + length - 1);
}

/// C(i, j, m) for all m. The loops over m, which take most of the time, read memory in order.
void Rotor::fill(std::size_t i, std::size_t j) {
  double* const row = this->row(i, j);
  std::fill(row, row + slots_ + 1, kImpossible);
  for (const Option& option : options_[i]) {
    const std::int64_t least = std::max({option.forward_peak + gradient_[j], option.backward_peak, option.saved});
    const double* const rest = i == j ? nullptr : this->row(i + 1, j);
    const double time = time_of(option, i, j);
    for (std::int64_t m = least; m <= slots_; ++m)
      row[m] = std::min(row[m], time + (rest == nullptr ? 0 : rest[m - option.saved]));
  }
  std::int64_t need = 0;
  for (std::size_t k = i + 1; k <= j; ++k) {
    need = std::max(need, need_of_sweep(i, k, j));
    if (need > slots_) break;
    const double sweep = sweep_time(i, k, j);
    const double* const behind = this->row(k, j);
    const double* const before = this->row(i, k - 1);
    const std::int64_t input = input_[k];
    for (std::int64_t m = std::max(need, input); m <= slots_; ++m)
      row[m] = std::min(row[m], sweep + behind[m - input] + before[m]);
  }
}

/// Slots that the forward run of stage k - 1 needs besides the input of stage i, before stages up to j are reversed.
std::int64_t Rotor::need_of_sweep(std::size_t i, std::size_t k, std::size_t j) const {
  const std::size_t last = k - 1;
  return sweep_peak_[last] + gradient_[j] + (last > i ? input_[last] : 0);
}

Rotor::Choice Rotor::choose(std::size_t i, std::size_t j, std::int64_t m) const {
  Choice best_choice;
  for (std::size_t o = 0; o < options_[i].size(); ++o) {
    const Option& option = options_[i][o];
    if (m < option.forward_peak + gradient_[j] || m < option.backward_peak) continue;
    const double time = time_of(option, i, j) + (i == j ? 0 : best(i + 1, j, m - option.saved));
    if (time < best_choice.time) best_choice = {time, 0, o};
  }
  std::int64_t need = 0;
  for (std::size_t k = i + 1; k <= j; ++k) {
    need = std::max(need, need_of_sweep(i, k, j));
    if (m < need) break;
    const double time = sweep_time(i, k, j) + best(k, j, m - input_[k]) + best(i, k - 1, m);
    if (time < best_choice.time) best_choice = {time, k, 0};
  }
  return best_choice;
}

std::optional<Nanos> Rotor::time(Bytes capacity) const {
  if (size_ == 0) return Nanos{};
  const double least = best(0, size_ - 1, slots_of(capacity));
  if (least == kImpossible) return {};
  return Nanos{static_cast<std::int64_t>(least)};
}

std::optional<ChainSequence> Rotor::sequence(Bytes capacity) const {
  if (!time(capacity)) return {};
  ChainSequence out;
  if (size_ > 0) append(0, size_ - 1, slots_of(capacity), out);
  return out;
}

std::optional<Bytes> Rotor::least_capacity() const {
  for (std::int64_t m = 0; m <= slots_; ++m)
    if (time(Bytes{m * slot_})) return Bytes{m * slot_};
  return {};
}

void Rotor::append(std::size_t i, std::size_t j, std::int64_t m, ChainSequence& out) const {
  const Choice choice = choose(i, j, m);
  const auto first = static_cast<std::uint32_t>(i);
  if (choice.split == 0) {
    const auto option = static_cast<std::uint32_t>(choice.option);
    out.push_back({ChainVerb::kSave, first, option});
    if (i < j) append(i + 1, j, m - options_[i][choice.option].saved, out);
    out.push_back({ChainVerb::kBackward, first, 0});
    return;
  }
  out.push_back({ChainVerb::kCheckpoint, first, 0});
  for (std::size_t l = i + 1; l < choice.split; ++l)
    out.push_back({ChainVerb::kSweep, static_cast<std::uint32_t>(l), 0});
  append(choice.split, j, m - input_[choice.split], out);
  append(i, choice.split - 1, m, out);
}

ChainSequence best_persistent(const Chain& chain, Bytes room, int slots) {
  if (auto within = Rotor{chain, room, slots}.sequence(room)) return *within;
  ChainSequence everything = save_all(chain);
  const Rotor rotor{chain, cost_of(chain, everything)->peak, slots};
  if (const auto least = rotor.least_capacity()) return *rotor.sequence(*least);
  return everything;
}

}  // namespace tidepool
