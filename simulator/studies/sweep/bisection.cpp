#include "simulator/studies/sweep/bisection.hpp"

#include <algorithm>
#include <utility>

namespace tidepool {

std::pair<std::ptrdiff_t, std::ptrdiff_t> Bisection::bracket() const {
  const auto holds =
      static_cast<std::ptrdiff_t>(std::find(known_.begin(), known_.end(), std::optional<bool>{true}) - known_.begin());
  std::ptrdiff_t fails = holds - 1;
  while (fails >= 0 && known_[static_cast<std::size_t>(fails)] != std::optional<bool>{false}) --fails;
  return {holds, fails};
}

std::vector<std::size_t> Bisection::wanted() const {
  if (known_.empty()) return {};
  if (!known_.back()) return {known_.size() - 1};
  const auto [holds, fails] = bracket();
  if (holds == static_cast<std::ptrdiff_t>(known_.size())) return {};
  if (holds - fails > 1) return {static_cast<std::size_t>(fails + (holds - fails) / 2)};
  std::vector<std::size_t> neighbours;
  for (const std::ptrdiff_t place : {holds - 2, holds + 1})
    if (place >= 0 && place < static_cast<std::ptrdiff_t>(known_.size()) && !known_[static_cast<std::size_t>(place)])
      neighbours.push_back(static_cast<std::size_t>(place));
  return neighbours;
}

std::optional<std::size_t> Bisection::least() const {
  const auto place = static_cast<std::size_t>(bracket().first);
  return place < known_.size() ? std::optional{place} : std::nullopt;
}

std::vector<std::size_t> Bisection::exceptions() const {
  std::vector<std::size_t> above;
  for (std::size_t place = least().value_or(known_.size()); place < known_.size(); ++place)
    if (known_[place] == std::optional<bool>{false}) above.push_back(place);
  return above;
}

std::size_t Bisection::trials() const {
  return static_cast<std::size_t>(
      std::count_if(known_.begin(), known_.end(), [](const auto& k) { return k.has_value(); }));
}

}  // namespace tidepool
