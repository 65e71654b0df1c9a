#include "traces/import/period.hpp"

#include <algorithm>
#include <limits>

namespace tidepool {
namespace {

constexpr std::size_t kAnchors = 5;
constexpr std::size_t kPeriodCandidates = 16;  // per anchor

/// z[i] is the length of the longest common prefix of the text and its part from i on.
std::vector<std::uint32_t> z_function(const std::vector<std::uint32_t>& text) {
  std::vector<std::uint32_t> z(text.size());
  std::size_t left = 0, right = 0;
  for (std::size_t i = 1; i < text.size(); ++i) {
    std::size_t length = i < right ? std::min<std::size_t>(right - i, z[i - left]) : 0;
    while (i + length < text.size() && text[length] == text[i + length]) ++length;
    z[i] = static_cast<std::uint32_t>(length);
    if (i + length > right) {
      left = i;
      right = i + length;
    }
  }
  return z;
}

/// Periods of the longest runs that contain position `anchor` and a whole period after it, longest run first. Of
/// periods with equally long runs, only the shortest is kept.
std::vector<std::size_t> periods_at(std::span<const std::uint32_t> events, std::size_t anchor) {
  constexpr std::uint32_t kSeparator = std::numeric_limits<std::uint32_t>::max();
  const std::vector<std::uint32_t> ahead =
      z_function({events.begin() + static_cast<std::ptrdiff_t>(anchor), events.end()});
  std::vector<std::uint32_t> mirrored{events.rend() - static_cast<std::ptrdiff_t>(anchor), events.rend()};
  mirrored.push_back(kSeparator);
  mirrored.insert(mirrored.end(), events.rbegin(), events.rend());
  const std::vector<std::uint32_t> behind = z_function(mirrored);

  struct Run {
    std::size_t length;
    std::size_t period;
  };
  std::vector<Run> runs;
  for (std::size_t period = 1; anchor + period < events.size(); ++period) {
    // The `back` events before the anchor equal those before anchor + period, and the ahead[period] events from the
    // anchor on equal those from anchor + period on.
    const std::size_t back = behind[anchor + 1 + events.size() - (anchor + period)];
    const std::size_t length = back + ahead[period] + period;
    if (length >= 2 * period) runs.push_back({length, period});
  }
  std::sort(runs.begin(), runs.end(), [](const Run& a, const Run& b) {
    return a.length != b.length ? a.length > b.length : a.period < b.period;
  });
  std::vector<std::size_t> periods;
  std::size_t last_length = 0;
  for (const Run& run : runs) {
    if (run.length == last_length) continue;
    last_length = run.length;
    periods.push_back(run.period);
    if (periods.size() == kPeriodCandidates) break;
  }
  return periods;
}

struct Candidate {
  Period period;
  std::size_t covered = 0;
  std::size_t longest = 0;
};

Candidate measure(std::span<const std::uint32_t> events, std::size_t length) {
  Candidate found;
  found.period.length = length;
  for (std::size_t i = 0; i + length < events.size();) {
    std::size_t end = i;
    while (end + length < events.size() && events[end] == events[end + length]) ++end;
    if (end - i >= length) {
      found.period.runs.push_back({i, end + length});
      found.covered += end + length - i;
      found.longest = std::max(found.longest, end + length - i);
      i = end + length;
    } else {
      i = end + 1;
    }
  }
  return found;
}

}  // namespace

Period find_period(std::span<const std::uint32_t> events) {
  std::vector<std::size_t> lengths;
  for (std::size_t i = 1; i <= kAnchors; ++i)
    for (const std::size_t length : periods_at(events, events.size() * i / (kAnchors + 1))) lengths.push_back(length);
  std::sort(lengths.begin(), lengths.end());
  lengths.erase(std::unique(lengths.begin(), lengths.end()), lengths.end());

  std::vector<Candidate> candidates;
  std::size_t covered = 0, longest = 0;
  for (const std::size_t length : lengths) {
    candidates.push_back(measure(events, length));
    covered = std::max(covered, candidates.back().covered);
    longest = std::max(longest, candidates.back().longest);
  }
  for (Candidate& candidate : candidates)
    if (candidate.longest * 5 >= longest && candidate.covered * 10 >= covered * 6) return std::move(candidate.period);
  return {};
}

}  // namespace tidepool
