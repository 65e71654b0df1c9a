// Bisection for the least of many values that meets an objective.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

namespace tidepool {

/// Searches for the least of the places 0 .. size-1 that holds (meets the objective). Bisection assumes that every
/// place above one that holds also holds. To check that, the two places below the answer and the one above it are tried
/// too. If one below holds, the search goes on below it. About log2(size) + 3 trials.
class Bisection {
 public:
  explicit Bisection(std::size_t size) : known_(size) {}

  /// The places to try next; none if the search has ended.
  std::vector<std::size_t> wanted() const;
  /// The result of the trial of a wanted place.
  void tell(std::size_t place, bool holds) { known_.at(place) = holds; }

  /// The answer, once wanted() is empty: it holds, the two places below it do not, and no tried place below them does.
  /// Nothing if the last place does not hold.
  std::optional<std::size_t> least() const;
  /// Tried places above the answer that do not hold: there, the objective is not monotone.
  std::vector<std::size_t> exceptions() const;
  std::size_t trials() const;

 private:
  /// The least place that is known to hold and the largest below it that is known not to (-1: none).
  std::pair<std::ptrdiff_t, std::ptrdiff_t> bracket() const;

  std::vector<std::optional<bool>> known_;
};

}  // namespace tidepool
