// Finds, as time passes, the candidate with the least cost per byte and per time since its last use.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

#include "simulator/engine/decisions/ranking.hpp"
#include "traces/base/quantity.hpp"

namespace tidepool {

/// Candidates in slots 0, 1, 2, ...; least(now) is the one with the least
///   cost / (size * (now - last access)),
/// with these rules. Quotients are rounded to the nearest double, and equal doubles tie. Among tied quotients, the one
/// with the largest order wins. Quotients of 0 are an exception: the one with the smallest order wins, also against
/// negative quotients of a larger order. A size or age of 0 makes the quotient infinite, and infinite quotients come
/// last. (A scan by ascending order that keeps the last minimum and stops at the first zero has the same result.)
///
/// A kinetic tournament: size * (now - last access) / cost is a line in time, and the candidate with the highest line
/// wins. Every node of the tree stores the winner below it and the time up to which this is certain. Lines are compared
/// in floating point with an error that is far below `kTied`; the winner's near ties are then compared exactly. set()
/// and clear() are O(log n); least() is O(log n) amortised over changes and overtakings. Negative costs, which
/// occur only in estimates with errors, are stored apart and scanned.
class StalenessIndex {
 public:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};

  /// Makes `slots` empty slots and begins at time 0.
  void reset(std::size_t slots);
  /// Fills a slot, or changes its candidate. `order` decides ties; no two candidates have the same.
  void set(std::uint32_t slot, Nanos cost, Bytes size, Nanos last_access, std::uint32_t order);
  void clear(std::uint32_t slot);
  /// The slot with the least quotient, or kNone if all are empty. `now` must not go back.
  std::uint32_t least(Nanos now);
  /// The ranking of the candidates: first the winner of least(now), then the others by ascending quotient. Only the
  /// first Ranking::kMost are listed. O(slots).
  /// @param known  known(slot): whether the cost is exact; false: it is a lower bound
  Ranking ranking(Nanos now, const std::function<bool(std::uint32_t)>& known);
  /// Number of comparisons of two lines in nodes of the tree so far.
  std::int64_t evaluations() const { return evaluations_; }

 private:
  static constexpr std::int64_t kForever = std::numeric_limits<std::int64_t>::max();
  static constexpr double kTied = 1e-9;  // relative

  struct Line {
    double slope;  // size / cost; infinite for a cost of 0, 0 for a size of 0
    std::int64_t since;
    std::int64_t cost, size;
    std::uint32_t order;
  };
  struct Node {
    std::uint32_t winner = kNone;
    std::int64_t until = kForever;  // the winners here and below are the same up to this time
  };

  double height(const Line& line) const {
    const std::int64_t age = now_ - line.since;
    return age > 0 ? line.slope * static_cast<double>(age) : 0;
  }
  double quotient_of(std::uint32_t slot) const;
  Node play(std::uint32_t left, std::uint32_t right);
  void climb(std::size_t leaf);
  void repair(std::size_t node);
  std::uint32_t best_of_tied(std::uint32_t winner);
  void visit_tied(std::size_t node, double threshold);
  std::uint32_t with_negatives(std::uint32_t best) const;

  std::size_t leaves_ = 1;
  std::int64_t now_ = 0;
  std::vector<Line> lines_;
  std::vector<Node> nodes_ = std::vector<Node>(2);
  std::vector<std::uint32_t> negatives_;    // slots with a negative cost
  std::vector<std::uint32_t> negative_at_;  // by slot: position in negatives_
  std::vector<std::uint32_t> tied_;
  std::int64_t evaluations_ = 0;
};

}  // namespace tidepool
