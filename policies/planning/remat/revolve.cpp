#include "policies/planning/remat/revolve.hpp"

#include <algorithm>
#include <limits>

namespace tidepool {
namespace {

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
