// State of a search that builds layouts from the ground up: the pieces placed, and the lowest offsets of the others.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "simulator/solvers/packing/search/problem.hpp"

namespace tidepool {

/// A piece that is not placed is *waiting*. Its least offset, `low`, is above all pieces that are placed in its
/// sections and above the offsets that were ruled out for it. The floor of a section is the least `low` of the pieces
/// that wait there; below it, the section will not change any more. If floor plus waiting sizes exceed the capacity in
/// some section, no layout can come from the state.
///
/// Each floor has a witness, a waiting piece that can lie there. The floor is computed anew only when its witness can
/// no longer lie there (as clauses watch two literals in satisfiability solvers).
class Skyline {
 public:
  Skyline(const PackingProblem& problem, std::int64_t capacity);

  const PackingProblem& problem() const { return *problem_; }
  std::int64_t capacity() const { return capacity_; }
  /// Goes back to the start. @return  false if it is proved that no layout within `capacity` exists
  bool reset(std::int64_t capacity);

  std::int64_t low(std::uint32_t piece) const { return low_[piece]; }
  bool placed(std::uint32_t piece) const { return placed_[piece] != 0; }
  std::int64_t floor(std::uint32_t section) const { return floor_[section]; }
  /// Units that may stay empty in the section above its floor.
  std::int64_t slack(std::uint32_t section) const { return capacity_ - floor_[section] - rest_[section]; }
  /// Number of pieces that wait in the section.
  std::uint32_t waiting(std::uint32_t section) const { return count_[section]; }
  /// The k-th piece that waits in the section.
  std::uint32_t waiter(std::uint32_t section, std::uint32_t k) const { return cells_[begin_[section] + k].piece; }
  /// Whether some waiting piece lives in the section and in the one before it.
  bool joined(std::uint32_t section) const { return joint_[section] > 0; }
  /// A hash of the waiting pieces whose first section this is, and of their `low`. ExactSearch adds these up to the key
  /// of a state.
  std::uint64_t key_low(std::uint32_t section) const { return key_low_[section]; }
  std::uint64_t key_high(std::uint32_t section) const { return key_high_[section]; }

  /// Places the piece at its `low`; the pieces that wait beside it then lie above. No section of the piece may have a
  /// lower floor.
  void place(std::uint32_t piece);
  /// Rules out offsets below `offset` for the piece. @return  the least offset from there on that its alignment and
  /// fixed pieces allow: its new low, unless its low was higher
  std::int64_t raise(std::uint32_t piece, std::int64_t offset);
  /// Computes the floors again. @return  false if a section, `failed()`, exceeds the capacity
  bool settle(std::span<const SectionRange> sections);
  std::uint32_t failed() const { return failed_; }

  /// A lower bound on the next offset above `low` at which a piece can rest on another one.
  std::int64_t next_rest(std::uint32_t piece) const;

  /// The present state, for undo(), which goes back to it.
  std::size_t mark() const { return trail_.size(); }
  void undo(std::size_t mark);

 private:
  struct Cell {
    std::uint32_t piece, position;  ///< index of the piece's own cell in place_in_
  };
  enum class Change : std::uint32_t { kLow, kFloor, kPlaced };
  struct Entry {
    std::int64_t before;
    std::uint32_t subject;
    Change change;
  };

  /// Calls visit(j) for the waiting pieces that share a section with piece i, for some of them more than once.
  template <class Visit>
  void for_neighbours(std::uint32_t i, const Visit& visit) const;
  std::int64_t admissible(std::uint32_t piece, std::int64_t offset) const;
  void set_low(std::uint32_t piece, std::int64_t low);
  void set_floor(std::uint32_t section, std::int64_t floor);
  void count_key(std::uint32_t piece, bool add);
  void enter(std::uint32_t piece);
  void leave(std::uint32_t piece);

  const PackingProblem* problem_;
  std::int64_t capacity_;

  std::vector<std::int64_t> low_;
  std::vector<std::uint8_t> placed_;
  std::vector<std::uint32_t> first_section_, first_cell_;

  std::vector<std::int64_t> floor_, rest_;
  std::vector<std::uint32_t> witness_, count_, joint_;
  std::vector<std::uint64_t> key_low_, key_high_;
  std::vector<std::uint32_t> begin_;                // by section: first index in cells_
  std::vector<Cell> cells_;                         // by section: first those that wait
  std::vector<std::uint32_t> place_in_;             // by piece and section: index of their cell in cells_
  std::vector<std::uint32_t> start_begin_;          // by section: first index in starts_
  std::vector<std::uint32_t> starts_;               // by section: pieces of which a range begins there
  std::vector<std::uint32_t> walls_begin_, walls_;  // by piece: fixed pieces in its sections, by offset

  std::vector<Entry> trail_;
  std::uint32_t failed_ = 0;
  bool over_ = false;  // a piece that lives in section failed_ was raised too high to fit
};

}  // namespace tidepool
