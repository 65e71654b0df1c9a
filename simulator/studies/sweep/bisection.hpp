// Bisection for the least value that meets an objective.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

namespace tidepool {

/// Searches the places 0 .. size-1 for the least one that holds, that is, meets the objective. Bisection assumes that
/// every place above one that holds also holds. To check this, the two places below the answer and the one above it are
/// tried, too. If one of those below holds, the search goes on below it. About log2(size) + 3 trials.
class Bisection {
 public:
  explicit Bisection(std::size_t size) : known_(size) {}

  /// The places to try next; none if the search has ended.
  std::vector<std::size_t> wanted() const;
  /// The result of the trial of a wanted place.
  void tell(std::size_t place, bool holds) { known_.at(place) = holds; }

  /// The answer, once wanted() is empty: it holds, the two places below it do not hold, nor does any tried place below
  /// them. None if the last place does not hold.
  std::optional<std::size_t> least() const;
  /// Tried places above the answer that do not hold: there, the objective is not monotone.
  std::vector<std::size_t> exceptions() const;
  std::size_t trials() const;

 private:
  /// The least place that is known to hold, and the largest place below it that is known not to hold (-1: none).
  std::pair<std::ptrdiff_t, std::ptrdiff_t> bracket() const;

  std::vector<std::optional<bool>> known_;
};

}  // namespace tidepool
