// Random small changes to a plan's treatment of its gaps.
#pragma once

#include <cstdint>
#include <random>
#include <utility>
#include <vector>

#include "policies/planning/search/mixed_plan.hpp"

namespace tidepool {

/// The treatment of a gap.
enum class How : std::uint8_t { kKept, kCopied, kDropped };

std::vector<How> how_of(const MixedSelection& selection, std::size_t gaps);
MixedSelection selection_of(const std::vector<How>& how);

/// A source of random changes, deterministic for a seed.
class GapChanges {
 public:
  /// @param planning, costs  outlive this object; costs as in Reruns::costs(): kImpossible for gaps that may not be
  ///                         dropped
  GapChanges(const Planning& planning, const std::vector<Nanos>& costs, std::uint64_t seed)
      : planning_{planning}, costs_{costs}, random_{seed} {}

  /// Sets the crowded slots to those in which a plan exceeds the capacity.
  void look_at(const MixedPlan& mixed);
  /// Sets the crowded slots.
  void look_at(std::vector<std::size_t> crowded) { crowded_ = std::move(crowded); }

  /// Returns the treatments with one more gap used, another treatment for a used gap, or both.
  std::vector<How> changed(const std::vector<How>& current);

 private:
  /// A number in [0, count), the same on every machine. `count` > 0.
  std::size_t draw(std::size_t count) { return static_cast<std::size_t>(random_() % count); }
  How otherwise(How how, std::uint32_t gap);
  void treat_otherwise(const std::vector<How>& current, std::vector<How>& changed);
  void use_another(const std::vector<How>& current, std::vector<How>& changed);

  const Planning& planning_;
  const std::vector<Nanos>& costs_;
  std::mt19937_64 random_;
  std::vector<std::size_t> crowded_;  // slots
  std::vector<std::uint32_t> candidates_;
};

}  // namespace tidepool
