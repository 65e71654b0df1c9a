#include "simulator/solvers/bounds/absent_sets.hpp"

#include <algorithm>
#include <numeric>

namespace tidepool {
namespace {

/// A set of sums, in units of the greatest common divisor.
class Sums {
 public:
  explicit Sums(std::size_t most) : words_(most / 64 + 1) { words_[0] = 1; }

  /// Adds, for each sum, the sum that is larger by `size`.
  void add(std::size_t size) {
    const std::size_t words = size / 64, bits = size % 64;
    for (std::size_t i = words_.size(); i-- > words;) {
      std::uint64_t moved = words_[i - words] << bits;
      if (bits > 0 && i > words) moved |= words_[i - words - 1] >> (64 - bits);
      words_[i] |= moved;
    }
  }
  bool has(std::size_t sum) const { return (words_[sum / 64] >> (sum % 64) & 1) != 0; }

 private:
  std::vector<std::uint64_t> words_;
};

/// Enumerates the sets from which no index can be removed, the largest sizes first.
class Enumeration {
 public:
  Enumeration(std::span<const Bytes> sizes, std::size_t most_sets) : sizes_{sizes}, most_sets_{most_sets} {
    for (std::uint32_t i = 0; i < sizes.size(); ++i)
      if (sizes[i] > Bytes{}) order_.push_back(i);
    std::stable_sort(order_.begin(), order_.end(),
                     [&](std::uint32_t a, std::uint32_t b) { return sizes[a] > sizes[b]; });
    rest_.resize(order_.size() + 1);
    for (std::size_t i = order_.size(); i-- > 0;) rest_[i] = rest_[i + 1] + sizes[order_[i]];
  }

  std::vector<std::vector<std::uint32_t>> run(Bytes excess) {
    go_on(0, excess);
    if (too_many_) sets_.clear();
    return std::move(sets_);
  }

 private:
  void go_on(std::size_t first, Bytes missing) {
    if (too_many_ || missing > rest_[first]) return;
    for (std::size_t i = first; i < order_.size() && !too_many_; ++i) {
      if (missing > rest_[i]) return;
      const Bytes size = sizes_[order_[i]];
      chosen_.push_back(order_[i]);
      // The size chosen last is the smallest: if it cannot be removed, no other can.
      if (size >= missing)
        keep();
      else
        go_on(i + 1, missing - size);
      chosen_.pop_back();
    }
  }
  void keep() {
    if (sets_.size() == most_sets_) too_many_ = true;
    sets_.push_back(chosen_);
  }

  std::span<const Bytes> sizes_;
  const std::size_t most_sets_;
  std::vector<std::uint32_t> order_;
  std::vector<Bytes> rest_;  // by place in the order: sum of the sizes from there on
  std::vector<std::uint32_t> chosen_;
  std::vector<std::vector<std::uint32_t>> sets_;
  bool too_many_ = false;
};

}  // namespace

Bytes least_sum(std::span<const Bytes> sizes, Bytes excess, std::int64_t most_work) {
  std::int64_t unit = 0, all = 0;
  for (const Bytes size : sizes) unit = std::gcd(unit, size.count()), all += size.count();
  if (unit == 0 || excess <= Bytes{}) return excess;
  const std::int64_t wanted = (excess.count() + unit - 1) / unit, most = all / unit;
  const std::int64_t words = most / 64 + 1;
  if (words > most_work / std::max<std::int64_t>(std::ssize(sizes), 1)) return Bytes{wanted * unit};
  Sums sums{static_cast<std::size_t>(most)};
  for (const Bytes size : sizes) sums.add(static_cast<std::size_t>(size.count() / unit));
  std::int64_t sum = wanted;
  while (sum < most && !sums.has(static_cast<std::size_t>(sum))) ++sum;
  return Bytes{sum * unit};
}

AbsentSets absent_sets(std::span<const Bytes> sizes, Bytes excess) {
  constexpr std::size_t kMostSets = 64;
  AbsentSets found;
  const Bytes all = std::accumulate(sizes.begin(), sizes.end(), Bytes{});
  found.possible = all >= excess;
  if (!found.possible) return found;
  found.least = least_sum(sizes, excess);
  found.sets = Enumeration{sizes, kMostSets}.run(excess);
  return found;
}

}  // namespace tidepool
