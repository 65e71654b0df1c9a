// Matrices over times, where "plus" is the later of two and "times" is one after the other.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "simulator/structure/lane_program.hpp"
#include "simulator/structure/structure.hpp"

namespace tidepool {

/// A square matrix of the max-plus algebra: (A x)_i is the latest of A_ij + x_j. An entry may be kNever: x_j has no
/// part in it.
class MaxPlusMatrix {
 public:
  static constexpr Nanos kNever{-(std::int64_t{1} << 60)};

  /// Nothing has a part in anything.
  explicit MaxPlusMatrix(std::size_t size) : size_{size}, entries_(size * size, kNever) {}
  static MaxPlusMatrix identity(std::size_t size);

  std::size_t size() const { return size_; }
  Nanos& at(std::size_t row, std::size_t column) { return entries_[row * size_ + column]; }
  Nanos at(std::size_t row, std::size_t column) const { return entries_[row * size_ + column]; }

  std::vector<Nanos> operator*(const std::vector<Nanos>& times) const;
  MaxPlusMatrix operator*(const MaxPlusMatrix& other) const;
  /// O(size^3 log exponent). `exponent` >= 0.
  MaxPlusMatrix power(std::int64_t exponent) const;

  /// The greatest mean of a cycle: what a further copy takes once a long row of them is under way. By Karp's theorem
  /// (Discrete Mathematics 23, 1978) over all starts, O(size^3). As time * `copies` of how many; none without cycles.
  struct Mean {
    Nanos time;
    std::int64_t copies = 1;
  };
  std::optional<Mean> greatest_cycle_mean() const;

 private:
  std::size_t size_;
  std::vector<Nanos> entries_;  // row by row
};

/// What one copy of a repeat does to the lanes and to the times that it hands on to the next one.
struct LayerMatrix {
  MaxPlusMatrix matrix;  ///< of the state in front of a copy, which gives that behind it, in front of the next
  std::vector<LaneProgram::Register> first;  ///< the registers of the state in front of the first copy
};

/// The matrix of a repeat of actions all of whose copies use registers in one pattern, where what a copy reads of
/// versions that the one before did not set is so early that nothing waits for it: for that the caller answers.
/// O(sources * size of the state).
LayerMatrix layer_matrix(const LaneProgram& program, const Repeat& repeat);

}  // namespace tidepool
