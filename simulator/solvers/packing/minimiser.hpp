// The search of minimise(): its state, and the ways in which it looks for lower layouts.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "simulator/planner.hpp"
#include "simulator/solvers/packing/end_of_time.hpp"
#include "simulator/solvers/packing/search/coarse_search.hpp"
#include "simulator/solvers/packing/search/ejection_search.hpp"
#include "simulator/solvers/packing/search/exact_search.hpp"
#include "simulator/solvers/packing/search/order_search.hpp"
#include "simulator/solvers/packing/search/random_numbers.hpp"
#include "simulator/solvers/packing/search/window_search.hpp"
#include "simulator/solvers/packing/sections.hpp"

namespace tidepool {

class Minimiser {
 public:
  Minimiser(const Instance& instance, const PackingLimits& limits, double effort);

  Layout run();

 private:
  using Answer = ExactSearch::Answer;
  static constexpr std::uint64_t kUnlimited = std::numeric_limits<std::uint64_t>::max();
  static constexpr std::uint64_t kMostCells = 4'000'000;  // pairs of a piece and a section in an exact search

  /// The searches that start from the largest pieces and from the best layout; they prove nothing.
  struct Improvement {
    explicit Improvement(const PackingProblem& problem) : coarse{problem}, repair{problem} {}
    CoarseSearch coarse;
    EjectionSearch repair;
    std::size_t turn = 0;  // of the coarse search
  };

  void keep(std::vector<Bytes> offsets);
  void one_pass();
  bool first_part_over() const;

  // set_aside() fills part_. The others look for places of its pieces.
  void set_aside();
  void search();
  void search_small();
  void improve();
  void attempt_guided(ExactSearch& search);
  void attempt_windows(WindowSearch& windows, ExactSearch& completion);
  std::uint32_t guided_middle(const std::vector<std::int64_t>& best, std::int64_t capacity);
  void attempt_order();
  void attempt_coarse(CoarseSearch& coarse, std::size_t turn);
  void attempt_repair(EjectionSearch& repair);
  Answer attempt(ExactSearch& search, std::int64_t share, std::uint64_t failures, std::uint64_t work, SearchRule rule);
  void keep_found(const std::vector<std::int64_t>& found);
  std::vector<std::int64_t> best_found() const;

  double most_work() const { return effort_ * (1e6 + 25 * static_cast<double>(problem_.pieces.size())); }
  /// Whether the search has to end. The effort does not limit the best orders of one pass.
  /// @param more  work of a run that has not ended
  bool over(std::uint64_t more = 0) const {
    return end_.reached() || (!limits_.time && !starting_ && static_cast<double>(work_ + more) > most_work());
  }
  /// The height `share` eighths of the way from low_ to high_, but less than high_.
  std::int64_t target(std::int64_t share) const;

  const Instance& instance_;
  const PackingLimits& limits_;
  double effort_;
  EndOfTime end_;
  std::uint64_t work_ = 0;  // of all searches
  Sections sections_;
  PackingProblem problem_;
  // The pieces that the searches place: all if one is fixed or aligned, else those that do not live in all sections.
  PackingProblem part_;
  std::vector<std::uint32_t> rest_;  // their numbers in problem_
  std::optional<OrderSearch> orders_;
  bool starting_ = true;  // during the first passes of orders_
  std::optional<Improvement> improvement_;
  std::uint64_t improving_ = 0;         // work of improve()
  std::int64_t base_ = 0;               // height of all other pieces; the pieces of part_ lie above them
  double step_ = 0.25;                  // share of high_ - low_ by which a repair lowers the best layout
  RandomNumbers random_{1};             // of the guides and the targets of passes
  std::size_t guided_ = 0, grown_ = 0;  // attempts so far
  std::uint64_t guided_work_ = 0, windows_work_ = 0;
  double windows_step_ = 0.5;  // share of high_ - low_ by which attempt_windows() tries to lower the best layout
  Layout layout_;
  // Heights in units: the proved lower bound, the lowest height that is still searched for, the best layout's.
  std::int64_t proved_ = 0, low_ = 0, high_ = std::numeric_limits<std::int64_t>::max();
};

}  // namespace tidepool
