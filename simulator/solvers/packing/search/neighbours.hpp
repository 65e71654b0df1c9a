// The pieces that share a section of time with a piece.
#pragma once

#include <cstdint>
#include <vector>

#include "simulator/solvers/packing/search/problem.hpp"

namespace tidepool {

/// A segment tree over the sections: a piece is listed at the O(log n) nodes that make up its ranges. The pieces that
/// live in the first section of a range are listed at that section's leaf or at a node above it; the other neighbours
/// begin inside the range.
class Neighbours {
 public:
  explicit Neighbours(const PackingProblem& problem);

  /// Calls visit(j) for the pieces that share a section with piece i and for i itself, for some of them more than once.
  template <class Visit>
  void visit(std::uint32_t i, const Visit& visit) const {
    for (const SectionRange range : problem_->lives(problem_->pieces[i])) {
      for (std::uint32_t node = range.first + leaves_; node > 0; node >>= 1)
        for (const std::uint32_t j : nodes_[node]) visit(j);
      for (std::uint32_t k = begin_[range.first + 1]; k < begin_[range.last]; ++k) visit(starts_[k]);
    }
  }

 private:
  const PackingProblem* problem_;
  std::uint32_t leaves_ = 1;
  std::vector<std::vector<std::uint32_t>> nodes_;
  std::vector<std::uint32_t> begin_;   // by section: first index in starts_
  std::vector<std::uint32_t> starts_;  // pieces of which a range begins in the section
};

}  // namespace tidepool
