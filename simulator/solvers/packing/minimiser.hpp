// The search of minimise(): its state, and the ways in which it looks for lower layouts.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <vector>

#include "simulator/planner.hpp"
#include "simulator/solvers/packing/end_of_time.hpp"
#include "simulator/solvers/packing/search/coarse_search.hpp"
#include "simulator/solvers/packing/search/ejection_search.hpp"
#include "simulator/solvers/packing/search/exact_search.hpp"
#include "simulator/solvers/packing/search/random_numbers.hpp"
#include "simulator/solvers/packing/search/window_search.hpp"
#include "simulator/solvers/packing/sections.hpp"

namespace tidepool {

class Minimiser {
 public:
  Minimiser(const Instance& instance, const PackingLimits& limits, double effort,
            std::span<const std::unique_ptr<Planner>> others);

  Layout run();

 private:
  using Answer = ExactSearch::Answer;
  static constexpr std::uint64_t kUnlimited = std::numeric_limits<std::uint64_t>::max();
  static constexpr std::uint64_t kMostCells = 100'000'000;  // pairs of a piece and a section in a search: a gigabyte

  /// The searches for layouts of many pieces; they prove nothing.
  struct Improvement {
    explicit Improvement(const PackingProblem& problem) : coarse{problem}, repair{problem} {}
    std::uint64_t work() const { return coarse.work() + repair.work(); }
    CoarseSearch coarse;
    EjectionSearch repair;
    std::size_t turn = 0;  // of the coarse search
  };

  void keep(std::vector<Bytes> offsets);
  void one_pass();
  void ask_others();
  bool first_part_over() const;
  void ask_others_in_time();

  // set_aside() fills part_. The others look for places of its pieces.
  void set_aside();
  void search();
  void search_small();
  void search_large();
  void improve(Improvement& improvement);
  void attempt_guided(ExactSearch& search);
  void attempt_windows(WindowSearch& windows, ExactSearch& completion);
  std::uint32_t guided_middle(const std::vector<std::int64_t>& best, std::int64_t capacity);
  void attempt_coarse(CoarseSearch& coarse, std::size_t turn);
  void attempt_repair(EjectionSearch& repair);
  Answer attempt(ExactSearch& search, std::int64_t share, std::uint64_t failures, std::uint64_t work, SearchRule rule);
  void keep_found(const std::vector<std::int64_t>& found);
  std::vector<std::int64_t> best_found() const;

  double most_work() const { return effort_ * (1e6 + static_cast<double>(cells_) / 4); }
  /// @param more  work of a run that has not ended
  bool over(std::uint64_t more = 0) const {
    return end_.reached() || (!limits_.time && static_cast<double>(work_ + more) > most_work());
  }
  /// The height `share` eighths of the way from low_ to high_, but less than high_.
  std::int64_t target(std::int64_t share) const;

  const Instance& instance_;
  const PackingLimits& limits_;
  double effort_;
  std::span<const std::unique_ptr<Planner>> others_;
  EndOfTime end_, early_;
  std::uint64_t cells_ = 0;  // pairs of a piece and a section in which it lives
  std::uint64_t work_ = 0;   // of all searches
  Sections sections_;
  PackingProblem problem_;
  // The pieces that the searches place: all if one is fixed or aligned, else those that do not live in all sections.
  PackingProblem part_;
  std::vector<std::uint32_t> rest_;     // their numbers in problem_
  std::int64_t base_ = 0;               // height of all other pieces; the pieces of part_ lie above them
  double step_ = 0.25;                  // share of high_ - low_ by which a repair lowers the best layout
  RandomNumbers random_{1};             // of the guides
  std::size_t guided_ = 0, grown_ = 0;  // attempts so far
  std::uint64_t guided_work_ = 0, windows_work_ = 0;
  double windows_step_ = 0.5;  // share of high_ - low_ by which attempt_windows() tries to lower the best layout
  Layout layout_;
  // Heights in units: the proved lower bound, the lowest height that is still searched for, the best layout's.
  std::int64_t proved_ = 0, low_ = 0, high_ = std::numeric_limits<std::int64_t>::max();
};

}  // namespace tidepool
