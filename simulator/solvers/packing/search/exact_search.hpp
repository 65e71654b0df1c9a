// Complete search for a layout within a capacity, from the ground up.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "simulator/solvers/packing/search/failed_states.hpp"
#include "simulator/solvers/packing/search/skyline.hpp"

namespace tidepool {

/// The section that the search decides about next, and the pieces that it tries first there. The search is complete
/// with every rule; the fastest rule differs from instance to instance.
struct SearchRule {
  enum class Section : std::uint8_t {
    kFewest,    ///< the one with the fewest branches, then the lowest
    kWeighted,  ///< the one with the least quotient of branches and 1 plus failures
    kLowest,    ///< the lowest, then the one with the fewest branches
    kTight,     ///< first sections without slack, then as kWeighted
    kTightest   ///< the one with the least slack, then as kWeighted
  };
  enum class Piece : std::uint8_t { kLongest, kLargestArea, kLargest, kGuided };  ///< kGuided: see guide()
  Section section = Section::kFewest;
  Piece piece = Piece::kLongest;
  bool forget = true;         ///< whether a run starts without the failure counts of earlier runs
  std::uint64_t shuffle = 0;  ///< if not 0, it changes the order among pieces that differ little
};

/// Depth-first. In every solution, pieces can be pushed down until each rests on the ground or on another piece. So the
/// search takes a section; its floor is the lowest level at which its pieces could rest. Either one of its pieces lies
/// on this floor (a branch for each piece), or none does and the floor rises to the next level at which one of them can
/// rest (the last branch, only in sections with slack). No two branches have a solution in common. The search cuts off
/// states that exceed the capacity in some section, and states that failed before, whatever the order of placements
/// that led to them. Parts of the problem that share no section any more are solved one by one. In a part whose
/// sections have equal floors, a piece that lives in all of them is placed at once: by an exchange argument, some
/// solution has it there. Compare Moffitt, "MiniMalloc" (ASPLOS 2023): canonical order of offsets, section totals,
/// decomposition.
class ExactSearch {
 public:
  enum class Answer : std::uint8_t { kFound, kNone, kLimit };

  explicit ExactSearch(const PackingProblem& problem);

  /// Failed states are kept for later calls with the same capacity.
  /// @param failures     most branches that fail at once; the next such branch ends the search with kLimit
  /// @param interrupted  asked now and then; true ends the search with kLimit, too
  Answer run(std::int64_t capacity, std::uint64_t failures, SearchRule rule, const std::function<bool()>& interrupted);

  /// The order of pieces for Piece::kGuided.
  /// @param ranks  by piece; the least comes first
  void guide(std::vector<double> ranks) { ranks_ = std::move(ranks); }

  /// Offsets by piece, after kFound.
  std::vector<std::int64_t> offsets() const;
  std::uint64_t nodes() const { return nodes_; }
  /// A measure of the time spent so far that does not depend on the machine: sections looked at, plus a constant for
  /// each node.
  std::uint64_t work() const { return work_; }

 private:
  /// Sections that waiting pieces connect: ranges [first, last) of ranges_, in order.
  struct Part {
    std::size_t first = 0, last = 0;
  };
  /// A part on the path: the alternatives in its chosen section, and the parts that the current alternative left.
  struct Frame {
    Part part;
    FailedStates::Key key;
    std::size_t mark = 0, ranges = 0, parts = 0, candidates = 0;  // lengths of the stacks before this frame
    std::size_t next = 0, end = 0;                                // candidates to try
    std::size_t next_part = 0;
    std::uint32_t section = 0;
    bool may_waste = false;
  };

  std::span<const SectionRange> sections_of(Part part) const {
    return std::span{ranges_}.subspan(part.first, part.last - part.first);
  }
  bool search(Part whole);
  bool enter(Part part);
  bool advance(Frame& frame);
  bool descend(Frame& frame);
  void revert(Frame& frame);
  std::int64_t level_after(const Frame& frame) const;
  void split(Part whole);
  void join_gaps(std::size_t first_part, std::size_t first_range);
  std::uint32_t choose(Part part) const;
  std::uint32_t count_ways(std::uint32_t section, double most) const;
  bool movable(std::uint32_t section) const;
  double worth(std::uint32_t piece) const;
  void gather_candidates(std::uint32_t section);
  std::optional<std::uint32_t> level_span(Part part) const;

  const PackingProblem* problem_;
  Skyline skyline_;
  FailedStates failed_;
  std::int64_t capacity_ = -1;
  SearchRule rule_;
  std::uint64_t nodes_ = 0, work_ = 0, failures_ = 0;
  bool stopped_ = false;
  const std::function<bool()>* interrupted_ = nullptr;
  std::vector<double> weight_, ranks_;
  std::vector<std::int64_t> length_;   // sections by piece
  std::vector<std::uint32_t> gapped_;  // pieces with gaps
  std::vector<Frame> frames_;          // the path
  std::vector<SectionRange> ranges_;   // stacks that its frames share
  std::vector<Part> parts_;
  std::vector<std::uint32_t> candidates_;
  struct Count {
    std::int64_t floor = -1;
    std::uint32_t ways = 0;
  };
  mutable std::vector<Count> counts_;  // by section: the result of its last count
};

}  // namespace tidepool
