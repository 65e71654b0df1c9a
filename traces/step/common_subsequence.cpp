#include "traces/step/common_subsequence.hpp"

#include <algorithm>
#include <cstddef>
#include <unordered_map>

namespace tidepool {
namespace {

using Pairs = std::vector<std::pair<std::uint32_t, std::uint32_t>>;

/// Parts [a, a_end) and [b, b_end) of the two strings.
struct Parts {
  std::uint32_t a, a_end, b, b_end;
};

class Comparison {
 public:
  Comparison(std::span<const std::uint32_t> a, std::span<const std::uint32_t> b, std::size_t most_edits)
      : a_{a}, b_{b}, most_edits_{most_edits} {}

  Pairs run() {
    compare({0, static_cast<std::uint32_t>(a_.size()), 0, static_cast<std::uint32_t>(b_.size())});
    std::sort(pairs_.begin(), pairs_.end());
    return std::move(pairs_);
  }

 private:
  void compare(Parts parts) {
    while (parts.a < parts.a_end && parts.b < parts.b_end && a_[parts.a] == b_[parts.b])
      pairs_.emplace_back(parts.a++, parts.b++);
    while (parts.a < parts.a_end && parts.b < parts.b_end && a_[parts.a_end - 1] == b_[parts.b_end - 1])
      pairs_.emplace_back(--parts.a_end, --parts.b_end);
    if (parts.a == parts.a_end || parts.b == parts.b_end) return;
    const Pairs cuts = unique_chain(parts);
    if (cuts.empty()) return shortest_edits(parts);
    for (const auto& [a, b] : cuts) {
      pairs_.emplace_back(a, b);
      compare({parts.a, a, parts.b, b});
      parts.a = a + 1;
      parts.b = b + 1;
    }
    compare(parts);
  }

  /// The longest chain of pairs of letters that occur once in either part.
  Pairs unique_chain(const Parts& parts) const {
    struct Places {
      std::uint32_t in_a = 0, in_b = 0, a = 0, b = 0;
    };
    std::unordered_map<std::uint32_t, Places> places;
    for (std::uint32_t i = parts.a; i < parts.a_end; ++i) ++places[a_[i]].in_a, places[a_[i]].a = i;
    for (std::uint32_t i = parts.b; i < parts.b_end; ++i) ++places[b_[i]].in_b, places[b_[i]].b = i;
    Pairs unique;
    for (const auto& [letter, at] : places)
      if (at.in_a == 1 && at.in_b == 1) unique.emplace_back(at.a, at.b);
    std::sort(unique.begin(), unique.end());
    std::vector<std::size_t> ends, before(unique.size());  // by length: the pair that ends the best chain
    for (std::size_t i = 0; i < unique.size(); ++i) {
      const auto end = std::lower_bound(ends.begin(), ends.end(), unique[i].second,
                                        [&](std::size_t pair, std::uint32_t b) { return unique[pair].second < b; });
      before[i] = end == ends.begin() ? unique.size() : *(end - 1);
      if (end == ends.end())
        ends.push_back(i);
      else
        *end = i;
    }
    Pairs chain;
    for (std::size_t i = ends.empty() ? unique.size() : ends.back(); i < unique.size(); i = before[i])
      chain.push_back(unique[i]);
    std::reverse(chain.begin(), chain.end());
    return chain;
  }

  void shortest_edits(const Parts& parts) {
    const auto n = std::int64_t{parts.a_end} - parts.a, m = std::int64_t{parts.b_end} - parts.b;
    const auto most = std::min(static_cast<std::int64_t>(most_edits_), n + m);
    const auto same = [&](std::int64_t x, std::int64_t y) {
      return a_[parts.a + static_cast<std::size_t>(x)] == b_[parts.b + static_cast<std::size_t>(y)];
    };
    // reach[d][k + d]: the farthest x on diagonal k = x - y after d edits.
    std::vector<std::vector<std::int64_t>> reach;
    for (std::int64_t d = 0; d <= most; ++d) {
      auto& now = reach.emplace_back(static_cast<std::size_t>(2 * d + 1));
      for (std::int64_t k = -d; k <= d; k += 2) {
        std::int64_t x = d == 0 ? 0 : next(reach, d, k);
        while (x < n && x - k < m && same(x, x - k)) ++x;
        now[static_cast<std::size_t>(k + d)] = x;
        if (k == n - m && x >= n) return walk_back(parts, reach, d, n, m);
      }
    }
  }

  static std::int64_t at(const std::vector<std::vector<std::int64_t>>& reach, std::int64_t d, std::int64_t k) {
    return k < -d || k > d ? -1 : reach[static_cast<std::size_t>(d)][static_cast<std::size_t>(k + d)];
  }
  /// Where the d-th edit ends on diagonal k: one letter of A or of B further than before it.
  static std::int64_t next(const std::vector<std::vector<std::int64_t>>& reach, std::int64_t d, std::int64_t k) {
    return std::max(at(reach, d - 1, k - 1) + 1, at(reach, d - 1, k + 1));
  }

  void walk_back(const Parts& parts, const std::vector<std::vector<std::int64_t>>& reach, std::int64_t d,
                 std::int64_t x, std::int64_t y) {
    for (; d >= 0; --d) {
      const std::int64_t k = x - y, begin = d == 0 ? 0 : next(reach, d, k);
      for (; x > begin; --x, --y)
        pairs_.emplace_back(parts.a + static_cast<std::uint32_t>(x - 1), parts.b + static_cast<std::uint32_t>(y - 1));
      if (d == 0) return;
      const bool from_a = at(reach, d - 1, k - 1) + 1 >= at(reach, d - 1, k + 1);
      x = from_a ? x - 1 : x;
      y = from_a ? y : y - 1;
    }
  }

  std::span<const std::uint32_t> a_, b_;
  std::size_t most_edits_;
  Pairs pairs_;
};

}  // namespace

std::vector<std::pair<std::uint32_t, std::uint32_t>> common_subsequence(std::span<const std::uint32_t> a,
                                                                        std::span<const std::uint32_t> b,
                                                                        std::size_t most_edits) {
  return Comparison{a, b, most_edits}.run();
}

}  // namespace tidepool
