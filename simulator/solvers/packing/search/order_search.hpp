// Layouts of one pass in an order that is mended after each pass.
#pragma once

#include <bit>
#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "simulator/solvers/packing/occupancy.hpp"
#include "simulator/solvers/packing/search/problem.hpp"
#include "simulator/solvers/packing/search/random_numbers.hpp"

namespace tidepool {

/// A pass places each piece once, into the lowest or the smallest hole: O(log n) lists of address ranges are read for a
/// piece, see Occupancy. The first passes take the pieces by size, area or life, or first those that live where much
/// else lives: what is placed later has no room there, and elsewhere room is plenty. Each later pass takes one of the
/// four best orders so far and moves the pieces that ended above the target forward; the new order stays if its layout
/// is no higher, and sometimes if it is. Source of the latter: Joslin & Clements, "Squeaky Wheel Optimization", JAIR
/// 10, 1999.
class OrderSearch {
 public:
  using Interrupted = std::function<bool(std::uint64_t)>;

  explicit OrderSearch(const PackingProblem& problem);

  /// One pass.
  /// @param target       pieces that ended above it move forward
  /// @param below        units; the layout must be lower than this
  /// @param interrupted  asked now and then with the work of this pass so far; true ends the pass
  /// @return             offsets by piece, or nothing
  std::optional<std::vector<std::int64_t>> run(std::int64_t target, std::int64_t below, const Interrupted& interrupted);
  /// Number of passes so far.
  std::size_t passes() const { return turn_; }
  /// Placing a piece takes as long as this many sections of a search: O(log n), and more where lists are long.
  static std::uint64_t piece_work(std::size_t pieces) { return 20 * std::bit_width(pieces) * (1 + pieces / 65'536); }
  /// As ExactSearch::work(), of all passes.
  std::uint64_t work() const { return work_; }

  static constexpr std::size_t kStarts = 20;     // passes that take no mended order
  static constexpr std::size_t kBestStarts = 8;  // the first of them make good layouts most often

 private:
  static constexpr std::size_t kChains = 4;
  struct Chain {
    std::vector<double> ranks;  // by piece, in [0, 1); the least comes first
    Fit fit = Fit::kFirst;
    std::vector<std::int64_t> offsets;
    std::int64_t height = 0;
  };

  std::vector<double> start_ranks(std::size_t start) const;
  bool pass(Chain& chain, const Interrupted& interrupted);
  void mend(Chain& chain, std::int64_t target);

  const PackingProblem* problem_;
  std::vector<std::int64_t> crowd_;  // by piece: the largest load of a section in which it lives
  std::vector<std::int64_t> life_;   // by piece: number of sections in which it lives
  std::int64_t load_ = 0;            // the largest of all sections
  std::vector<Chain> chains_;        // the best orders so far; while starting, the lowest layout first
  std::vector<std::pair<double, std::uint32_t>> order_;  // of a pass
  std::size_t turn_ = 0;                                 // number of passes so far
  std::uint64_t work_ = 0;
  RandomNumbers random_{1};
};

}  // namespace tidepool
