// Buffers that are alive while an op runs in every order of a step's ops, and the peak that follows from them.
#pragma once

#include <cstdint>
#include <vector>

#include "traces/step/dependencies.hpp"
#include "traces/step/lifetimes.hpp"

namespace tidepool {

/// A set of small numbers for each op.
class OpSets {
 public:
  OpSets(std::size_t ops, std::size_t numbers) : words_{(numbers + 63) / 64}, bits_(ops * words_) {}
  void add(std::size_t op, std::size_t number) { bits_[op * words_ + number / 64] |= std::uint64_t{1} << number % 64; }
  bool has(std::size_t op, std::size_t number) const {
    return (bits_[op * words_ + number / 64] >> number % 64 & 1) != 0;
  }
  /// Adds the numbers of another op.
  void add_all(std::size_t op, std::size_t other) {
    for (std::size_t i = 0; i < words_; ++i) bits_[op * words_ + i] |= bits_[other * words_ + i];
  }

 private:
  std::size_t words_;
  std::vector<std::uint64_t> bits_;
};

/// Most ops of a step for which reachable_ops() is called. Its sets for both directions then take 100 MB together.
inline constexpr std::size_t kMostReached = 20'000;

/// By op: the ops that run before it (or after it) in every order, without the op itself.
/// @param edges  Dependencies::before, or Dependencies::after with `forward` false
OpSets reachable_ops(const std::vector<std::vector<std::uint32_t>>& edges, bool forward);

/// A lower bound on the peak of every order, if nothing is dropped or copied to the host: while an op runs, two kinds
/// of buffers are alive. The op needs the first kind. The second kind is needed both before it and after it, in every
/// order. (A buffer from before the step is needed before every op, and one that outlives the step after every op.)
/// O(ops * (dependencies + uses)). For a step of more than kMostReached ops: peak_bound().
Bytes alive_bound(const Lifetimes& lifetimes, const Dependencies& dependencies);

}  // namespace tidepool
