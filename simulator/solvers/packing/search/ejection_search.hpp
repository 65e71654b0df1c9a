// A local search that puts the last pieces into a layout that has no holes for them.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "simulator/solvers/packing/search/problem.hpp"
#include "simulator/solvers/packing/search/random_numbers.hpp"

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

/// A step takes a piece without a place and puts it where the pieces in its way have the least worth; these lose their
/// places. The worth of a piece is the product of its size, the square root of its number of sections, and 1 plus the
/// number of steps in which other pieces lost their places to it. The last factor keeps the search from going in
/// circles. A failure proves nothing. Cost of a step: O(k log k) for k pieces that live together with the placed one.
/// Source: Nagata & Bräysy, "A Powerful Route Minimization Heuristic for the Vehicle Routing Problem with Time
/// Windows", Operations Research Letters 37, 2009: guided ejection search.
class EjectionSearch {
 public:
  explicit EjectionSearch(const PackingProblem& problem);

  /// @param offsets      by piece, -1 for pieces without a place. No two pieces overlap, and fixed ones have their
  ///                     places. Becomes a layout within `capacity` if the answer is true; otherwise it is unchanged
  /// @param interrupted  asked now and then with the work of this run so far; true ends the run
  bool run(std::vector<std::int64_t>& offsets, std::int64_t capacity,
           const std::function<bool(std::uint64_t)>& interrupted);
  /// In the unit of ExactSearch::work(), of all runs.
  std::uint64_t work() const { return work_; }

 private:
  struct Obstacle {
    std::int64_t offset, top;
    double worth;
    std::uint32_t piece;
  };
  bool place(std::uint32_t piece, std::int64_t capacity);
  void find_obstacles(std::uint32_t piece);
  std::int64_t cheapest(const PackingProblem::Piece& piece, std::int64_t capacity, bool& free);

  const PackingProblem* problem_;
  Neighbours neighbours_;
  RandomNumbers random_{1};
  std::vector<double> worth_, trouble_;  // by piece
  std::vector<std::int64_t> offsets_;
  std::vector<std::uint32_t> waiting_;        // the last is placed next
  std::vector<Obstacle> by_offset_, by_top_;  // placed pieces that live together with the one to be placed
  std::vector<std::uint32_t> seen_;           // by piece: the last step that came across it
  std::uint32_t step_ = 0;
  std::uint64_t work_ = 0;
};

}  // namespace tidepool
