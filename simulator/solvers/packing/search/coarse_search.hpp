// Layouts of large problems: a search places the pieces of the largest areas, and a pass over all others fills holes.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "simulator/solvers/packing/occupancy.hpp"
#include "simulator/solvers/packing/search/ejection_search.hpp"
#include "simulator/solvers/packing/search/exact_search.hpp"
#include "simulator/solvers/packing/search/order_search.hpp"

namespace tidepool {

/// A few pieces make up most of the load and are hard to place; many small ones fit into the holes between them. So
/// ExactSearch places the pieces with the largest products of size and sections as if there were no others. A pass then
/// places each other piece where it fits; a run makes up to two passes, which differ in their order or Fit.
/// EjectionSearch tries to place the pieces that found no place. In later runs, ExactSearch also places the first such
/// piece of each pass.
class CoarseSearch {
 public:
  explicit CoarseSearch(const PackingProblem& problem);

  struct Limits {
    std::int64_t capacity;  ///< units within which the exact search places its pieces, and the passes try to
    std::int64_t below;     ///< units; the layout must be lower than this
    std::uint64_t cells;    ///< most pairs of a piece and a section in the exact search
    std::uint64_t visits;   ///< most visits of such a pair in the exact search, on average
  };
  /// @param share        the part of the pieces that the exact search places, besides fixed ones and those that found
  ///                     no place before
  /// @param interrupted  asked now and then with the work of this run so far; true ends the run
  /// @return             offsets by piece, or nothing
  std::optional<std::vector<std::int64_t>> run(double share, Limits limits, SearchRule rule,
                                               const std::function<bool(std::uint64_t)>& interrupted);
  /// As ExactSearch::work(), of all runs.
  std::uint64_t work() const { return work_; }

 private:
  static constexpr std::size_t kFills = 2;  // most passes in a run
  struct Filled {
    std::vector<std::int64_t> offsets;
    std::vector<std::uint32_t> waiting;  ///< pieces that found no place within the capacity
    std::int64_t height;
  };
  std::vector<std::uint32_t> choose(double share, std::uint64_t most_cells) const;
  /// @param is_over  whether the limits are reached; asked if there are very many pieces
  Filled fill(const std::vector<std::uint32_t>& order, Fit fit, std::int64_t capacity, Occupancy occupancy,
              std::vector<std::int64_t> offsets, const std::function<bool()>& is_over);

  const PackingProblem* problem_;
  EjectionSearch ejection_;
  std::vector<std::vector<std::uint32_t>> orders_;  // of the passes: by area, by size, by sections
  std::vector<std::uint64_t> sections_of_;          // by piece: number of sections in which it lives
  std::vector<std::uint8_t> hard_;                  // by piece: fixed, or found no place
  std::size_t turn_ = 0;                            // number of passes so far
  std::uint64_t work_ = 0;
};

}  // namespace tidepool
