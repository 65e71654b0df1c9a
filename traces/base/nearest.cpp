#include "traces/base/nearest.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <numeric>
#include <utility>

namespace tidepool {
namespace {

bool same(char x, char y) {
  return std::tolower(static_cast<unsigned char>(x)) == std::tolower(static_cast<unsigned char>(y));
}

/// The only known word that begins with `word`; "" if there is none or several.
std::string continued(std::string_view word, const std::vector<std::string>& known) {
  const auto begins = [&](const std::string& candidate) {
    return candidate.size() > word.size() && std::equal(word.begin(), word.end(), candidate.begin(), same);
  };
  const auto first = std::find_if(known.begin(), known.end(), begins);
  return first == known.end() || std::any_of(first + 1, known.end(), begins) ? "" : *first;
}

/// The least number of insertions, deletions and changes of a character and of swaps of two neighbours that lead from
/// `a` to `b`. Upper and lower case are equal. O(|a| * |b|).
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  std::iota(last.begin(), last.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (same(a[i - 1], b[j - 1]) ? 0u : 1u)});
      if (i > 1 && j > 1 && same(a[i - 1], b[j - 2]) && same(a[i - 2], b[j - 1]))
        row[j] = std::min(row[j], before[j - 2] + 1);
    }
    std::swap(before, last);
    std::swap(last, row);
  }
  return last[b.size()];
}

}  // namespace

std::string nearest(std::string_view word, const std::vector<std::string>& known) {
  constexpr std::size_t kShortestBeginning = 3;
  constexpr std::size_t kLongestWord = 64;  // nobody mistypes a longer one; finding the distance takes quadratic time
  if (word.size() > kLongestWord) return "";
  if (word.size() >= kShortestBeginning)
    if (std::string whole = continued(word, known); !whole.empty()) return whole;
  std::size_t best = std::max<std::size_t>(1, word.size() / 3) + 1;
  std::string found;
  for (const std::string& candidate : known) {
    const std::size_t distance = edit_distance(word, candidate);
    if (distance < best) best = distance, found = candidate;
  }
  return found;
}

std::string unknown_name(std::string_view what, std::string_view name, const std::vector<std::string>& known) {
  const std::string near = nearest(name, known);
  return fmt::format("no {} named '{}'{}; known: {}", what, name,
                     near.empty() ? "" : fmt::format(", did you mean '{}'?", near), fmt::join(known, ", "));
}

}  // namespace tidepool
