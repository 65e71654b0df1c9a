// The least of many values that reaches something, from few trials.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

namespace tidepool {

/// Searches the least of the places 0 .. size-1 that holds, as if all above a place that holds did too, and then looks
/// whether that was so: the two places below the answer and the one above it are tried as well. One below that holds
/// begins the search again from there. About log2(size) + 3 trials.
class Bisection {
 public:
  explicit Bisection(std::size_t size) : known_(size) {}

  /// Places to be tried before it can go on, none when it has ended.
  std::vector<std::size_t> wanted() const;
  /// What a trial of a wanted place came to.
  void tell(std::size_t place, bool holds) { known_.at(place) = holds; }

  /// The answer, once nothing is wanted: it holds, the two places below it do not, and no tried place below them does.
  /// Nothing: the last place does not hold.
  std::optional<std::size_t> least() const;
  /// Tried places above the answer that do not hold: what was searched is not monotone.
  std::vector<std::size_t> exceptions() const;
  std::size_t trials() const;

 private:
  /// The least place that is known to hold and the largest below it that is known not to (-1: none).
  std::pair<std::ptrdiff_t, std::ptrdiff_t> bracket() const;

  std::vector<std::optional<bool>> known_;
};

}  // namespace tidepool
