#include "traces/step/repeats.hpp"

#include <algorithm>
#include <tuple>

#include "traces/base/quantity.hpp"

namespace tidepool {
namespace {

/// The lengths over which two positions agree, forwards and backwards, by hashes of all prefixes.
class Agreement {
 public:
  explicit Agreement(std::span<const std::uint32_t> letters) : letters_{letters} {
    hash_.reserve(letters.size() + 1);
    power_.reserve(letters.size() + 1);
    hash_.push_back(0);
    power_.push_back(1);
    for (const std::uint32_t letter : letters) {
      hash_.push_back(add(times(hash_.back(), kBase), std::uint64_t{letter} + 1));
      power_.push_back(times(power_.back(), kBase));
    }
  }

  /// The number of equal letters from `a` and from `b` on; a < b.
  std::size_t ahead(std::size_t a, std::size_t b) const {
    return most(letters_.size() - b, [&](std::size_t length) { return part(a, length) == part(b, length); });
  }
  /// The number of equal letters before `a` and before `b`; a < b.
  std::size_t back(std::size_t a, std::size_t b) const {
    return most(a, [&](std::size_t length) { return part(a - length, length) == part(b - length, length); });
  }

 private:
  static constexpr std::uint64_t kModulus = (std::uint64_t{1} << 61) - 1, kBase = 0x0b1e'55ed'5eed'cafe;

  static std::uint64_t add(std::uint64_t a, std::uint64_t b) { return a + b >= kModulus ? a + b - kModulus : a + b; }
  static std::uint64_t times(std::uint64_t a, std::uint64_t b) {
    const auto product = static_cast<Int128>(a) * static_cast<Int128>(b);
    return add(static_cast<std::uint64_t>(product) & kModulus, static_cast<std::uint64_t>(product >> 61));
  }
  std::uint64_t part(std::size_t first, std::size_t length) const {
    return add(hash_[first + length], kModulus - times(hash_[first], power_[length]));
  }

  /// The greatest length up to `limit` for which `holds`; `holds` must be monotone.
  template <class Holds>
  static std::size_t most(std::size_t limit, Holds holds) {
    std::size_t sure = 0, step = 1;
    while (sure + step <= limit && holds(sure + step)) sure += step, step *= 2;
    for (std::size_t end = std::min(limit, sure + step - 1); sure < end;) {
      const std::size_t middle = sure + (end - sure + 1) / 2;
      holds(middle) ? sure = middle : end = middle - 1;
    }
    return sure;
  }

  std::span<const std::uint32_t> letters_;
  std::vector<std::uint64_t> hash_, power_;
};

}  // namespace

std::vector<PeriodicPart> periodic_parts(std::span<const std::uint32_t> letters) {
  const auto n = static_cast<std::uint32_t>(letters.size());
  const Agreement agreement{letters};
  std::vector<PeriodicPart> parts;
  std::vector<std::uint32_t> next(n);  // the end of the longest Lyndon word that begins here
  for (const bool ascending : {true, false}) {
    const auto less = [&](std::uint32_t a, std::uint32_t b) {  // compares the suffixes at a and at b > a
      const std::size_t same = agreement.ahead(a, b);
      if (b + same == n) return false;
      return (letters[a + same] < letters[b + same]) == ascending;
    };
    for (std::uint32_t i = n; i-- > 0;) {
      std::uint32_t end = i + 1;
      while (end < n && less(i, end)) end = next[end];
      next[i] = end;
      if (end == n) continue;
      const std::uint32_t period = end - i;
      const auto back = static_cast<std::uint32_t>(agreement.back(i, end));
      const auto ahead = static_cast<std::uint32_t>(agreement.ahead(i, end));
      if (back + ahead >= period) parts.push_back({i - back, end + ahead, period});
    }
  }
  const auto key = [](const PeriodicPart& part) { return std::tuple{part.first, part.last, part.period}; };
  std::sort(parts.begin(), parts.end(), [&](const PeriodicPart& a, const PeriodicPart& b) { return key(a) < key(b); });
  parts.erase(std::unique(parts.begin(), parts.end()), parts.end());
  return parts;
}

}  // namespace tidepool
