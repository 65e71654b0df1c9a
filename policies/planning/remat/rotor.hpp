// The best persistent order in which a heterogeneous chain is reversed within a memory limit.
#pragma once

#include <algorithm>
#include <limits>
#include <optional>
#include <vector>

#include "policies/planning/remat/chain.hpp"

namespace tidepool {

/// Optimal among persistent orders: those in which a kept value stays until its use. A dynamic program over C(i, j, m):
/// the least time to reverse the stages i to j within m slots, not counting the input of stage i, which is kept:
///   C(i, i, m) = min over options o of forward_o + backward_o          if both fit into m
///   C(i, j, m) = min of
///     F_ck at i, swept up to k:  sum over l in [i, k) of forward_l + C(k, j, m - x_k) + C(i, k - 1, m)
///     F_all at i:                min over options o of forward_o + backward_o + C(i + 1, j, m - saved_o)
/// x_k is the input of stage k. Times of first runs (j is the last stage) and of later runs differ.
/// Sizes are rounded up to whole slots, so that a sequence never exceeds its capacity.
/// O(slots * (stages^3 + stages^2 * options)) time, O(slots * stages^2) memory.
/// Paper: Beaumont, Eyraud-Dubois, Herrmann, Joly, Shilova, "Optimal checkpointing for heterogeneous chains", 2019
/// (hal-02352969), theorem 1; options per stage: Zhao et al., "Rockmate", ICML 2023.
class Rotor {
 public:
  /// @param most  the largest capacity of later queries. It is divided into at most `slots` equal slots; into fewer if
  ///              all sizes are multiples of a larger slot
  Rotor(const Chain& chain, Bytes most, int slots);

  /// The least time within a capacity (rounded down to whole slots); none if there is no such sequence.
  std::optional<Nanos> time(Bytes capacity) const;
  /// A sequence that takes time(capacity).
  std::optional<ChainSequence> sequence(Bytes capacity) const;
  /// The least capacity, in whole slots, that has a sequence; none if even `most`, rounded up to them, is too small.
  std::optional<Bytes> least_capacity() const;

 private:
  static constexpr double kImpossible = std::numeric_limits<double>::infinity();

  struct Option {
    double first = 0, again = 0, alone = 0;                       // ns, with the backward step; whole numbers
    std::int64_t saved = 0, forward_peak = 0, backward_peak = 0;  // in slots
  };
  struct Choice {
    double time = kImpossible;
    std::size_t split = 0;   // F_ck up to here; 0: F_all
    std::size_t option = 0;  // of F_all
  };

  std::size_t index(std::size_t i, std::size_t j) const {
    return (i * size_ + j) * static_cast<std::size_t>(slots_ + 1);
  }
  double* row(std::size_t i, std::size_t j) { return table_.data() + index(i, j); }
  double best(std::size_t i, std::size_t j, std::int64_t m) const {
    return m < 0 ? kImpossible : table_[index(i, j) + static_cast<std::size_t>(m)];
  }
  /// Time of an option: of its first run if `j` is the last stage of the chain, else of a later run.
  double time_of(const Option& option, std::size_t i, std::size_t j) const {
    return j + 1 == size_ ? option.first : i == j ? option.alone : option.again;
  }
  /// Time of a forward run of the stages [i, k), before stages up to j are reversed.
  double sweep_time(std::size_t i, std::size_t k, std::size_t j) const {
    const std::vector<double>& sum = j + 1 == size_ ? sweep_first_ : sweep_again_;
    return sum[k] - sum[i];
  }
  void fill(std::size_t i, std::size_t j);
  std::int64_t need_of_sweep(std::size_t i, std::size_t k, std::size_t j) const;
  Choice choose(std::size_t i, std::size_t j, std::int64_t m) const;
  void append(std::size_t i, std::size_t j, std::int64_t m, ChainSequence& out) const;

  std::int64_t slots_of(Bytes capacity) const { return std::clamp<std::int64_t>(capacity.count() / slot_, 0, slots_); }

  std::size_t size_;
  std::int64_t slots_, slot_ = 1;                  // number of slots, and bytes of one
  std::vector<double> sweep_first_, sweep_again_;  // ns; totals over the stages before each stage
  std::vector<std::int64_t> input_, sweep_peak_, gradient_;
  std::vector<std::vector<Option>> options_;
  std::vector<double> table_;  // by i, j, m
};

/// The persistent order that takes least time within `room`. If none fits, the order for the least capacity that has
/// one. If no capacity has one, since sizes are rounded up to slots, the order that saves everything.
ChainSequence best_persistent(const Chain& chain, Bytes room, int slots);

}  // namespace tidepool
