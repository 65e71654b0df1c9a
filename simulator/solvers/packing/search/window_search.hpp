// Layouts of a window of time that grows until it covers all sections.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "simulator/solvers/packing/search/exact_search.hpp"
#include "simulator/solvers/packing/search/random_numbers.hpp"

namespace tidepool {

/// The problem of one window: every piece lives only while it lives in the window, and pieces that do not live there
/// are left out. `item` of a piece is its number in `problem`. No layout of `problem` is lower than the lowest layout
/// of a window, since it contains a layout of the window.
PackingProblem clipped(const PackingProblem& problem, SectionRange window);

/// ExactSearch finds layouts of short windows at once, and may fail for the whole problem: when it fails, it undoes
/// decisions about sections that did not cause the failure. So an attempt finds a layout of a window and lets the
/// window grow at both ends. Most runs of a search try the pieces in the order of the layout of the smaller window,
/// changed a little at random. Most attempts begin where the last one could not grow: what is hardest comes first.
/// Compare Beck, "Solution-guided multi-point constructive search for job shop scheduling", JAIR 29, 2007.
class WindowSearch {
 public:
  using Answer = ExactSearch::Answer;

  explicit WindowSearch(const PackingProblem& problem);

  /// One attempt. kNone: some window has no layout within `capacity`, so the whole problem has none.
  /// @param interrupted  asked now and then with the work of this attempt so far; true ends it
  Answer run(std::int64_t capacity, const std::function<bool(std::uint64_t)>& interrupted);

  /// By piece: after kFound, its offset; else its offset in the last layout of a window in which it lives, or -1.
  const std::vector<std::int64_t>& offsets() const { return offsets_; }
  /// As ExactSearch::work(), of all attempts.
  std::uint64_t work() const { return work_; }

 private:
  Answer solve(SectionRange window, std::int64_t capacity, const std::function<bool(std::uint64_t)>& interrupted);
  SectionRange first_window();

  const PackingProblem* problem_;
  std::vector<std::int64_t> offsets_;
  RandomNumbers random_{7};
  std::uint32_t hardest_ = 0;  // the section at which the last attempt ended
  std::uint64_t attempts_ = 0, work_ = 0, begin_ = 0;
};

}  // namespace tidepool
