#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <tuple>
#include <utility>

#include "simulator/engine/planned_pool.hpp"
#include "simulator/option_values.hpp"
#include "simulator/registry.hpp"
#include "simulator/solvers/packing/greedy.hpp"
#include "simulator/solvers/packing/heuristic.hpp"

namespace tidepool {
namespace {

/// The C library's rand_r, which TVM uses with the first seed 0: three steps of one linear congruential generator give
/// 11, 10 and 10 bits.
class TvmRandom {
 public:
  /// A number in [0, limit). `limit` > 0.
  std::size_t below(std::size_t limit) { return next() % limit; }

 private:
  std::uint32_t step(std::uint32_t range) {
    state_ = state_ * 1'103'515'245 + 12'345;
    return state_ / 65'536 % range;
  }
  std::uint32_t next() {
    const std::uint32_t high = step(2'048), middle = step(1'024);
    return ((high << 10) ^ middle) << 10 ^ step(1'024);
  }

  std::uint32_t state_ = 0;
};

/// Counts of elements at positions: how many were added below a position.
class PrefixCount {
 public:
  explicit PrefixCount(std::size_t size) : tree_(size + 1) {}
  void add(std::size_t at) {
    for (++at; at < tree_.size(); at += at & -at) ++tree_[at];
  }
  std::int64_t below(std::size_t end) const {
    std::int64_t sum = 0;
    for (; end > 0; end -= end & -end) sum += tree_[end];
    return sum;
  }

 private:
  std::vector<std::int64_t> tree_;
};

/// The search for one instance: an order, and the conflicts of each buffer. A buffer with gaps conflicts with all
/// buffers that live between its first and last position, since TVM knows no gaps.
class HillClimb {
 public:
  HillClimb(const Instance& instance, const Sections& sections) : instance_{instance}, sections_{sections} {
    std::vector<std::int64_t> conflicts(instance.items.size());
    const std::size_t positions = std::max(sections.count(), 1U);
    PrefixCount begins{positions}, ends{positions};
    for (std::uint32_t i = 0; i < instance.items.size(); ++i) {
      begins.add(hull(i).first);
      ends.add(hull(i).last - 1);
    }
    for (std::uint32_t i = 0; i < instance.items.size(); ++i)
      conflicts[i] = begins.below(hull(i).last) - ends.below(hull(i).first);
    order_.resize(instance.items.size());
    for (std::uint32_t i = 0; i < order_.size(); ++i) order_[i] = i;
    std::sort(order_.begin(), order_.end(), [&](std::uint32_t a, std::uint32_t b) {
      return std::tuple{instance.items[a].size, conflicts[a], a} > std::tuple{instance.items[b].size, conflicts[b], b};
    });
    rank_.resize(order_.size());
    for (std::uint32_t i = 0; i < order_.size(); ++i) rank_[order_[i]] = i;
  }

  std::vector<Bytes> place() const { return place_in_order(instance_, sections_, order_, Fit::kFirst); }

  using Ranks = std::pair<std::uint32_t, std::uint32_t>;

  /// A pair of places in the order whose exchange may improve `layout`. None if the drawn buffer on top has no conflict
  /// before it, or if only one buffer can be drawn.
  std::optional<Ranks> choose(const std::vector<Bytes>& layout, Bytes height, TvmRandom& random) const {
    std::vector<std::uint32_t> tops;  // by rank
    for (const std::uint32_t i : order_)
      if (layout[i] + instance_.items[i].size == height) tops.push_back(i);
    const std::uint32_t top = tops[random.below(tops.size())];
    std::vector<std::uint32_t> first;  // ranks of its conflicts before it
    for (std::uint32_t rank = 0; rank < rank_[top]; ++rank)
      if (conflict(order_[rank], top)) first.push_back(rank);
    if (first.empty()) return {};
    const std::vector<std::int64_t> second = second_level(top);
    const auto seconds = static_cast<std::size_t>(second.empty() ? 0 : second.back());

    const std::uint32_t one = first[random.below(first.size())];
    std::uint32_t two = one;
    while (two == one) {
      if (seconds > 0 && random.below(100) > 25) {
        const auto drawn = static_cast<std::int64_t>(random.below(seconds));
        two = static_cast<std::uint32_t>(std::upper_bound(second.begin(), second.end(), drawn) - second.begin());
      } else {
        two = first[random.below(first.size())];
      }
      if (seconds < 2 && first.size() < 2) break;
    }
    if (one == two) return {};
    return Ranks{one, two};
  }

  void swap(Ranks ranks) {
    std::swap(order_[ranks.first], order_[ranks.second]);
    std::swap(rank_[order_[ranks.first]], rank_[order_[ranks.second]]);
  }

 private:
  SectionRange hull(std::uint32_t item) const {
    const std::span<const SectionRange> ranges = sections_.of(item);
    return ranges.empty() ? SectionRange{0, 1} : SectionRange{ranges.front().first, ranges.back().last};
  }
  bool conflict(std::uint32_t a, std::uint32_t b) const {
    return hull(a).first < hull(b).last && hull(b).first < hull(a).last;
  }

  /// TVM lists, for every conflict c of `top`, the conflicts of c that come before c, so a buffer is listed once for
  /// each such c. @return by rank, the number of entries of that list with this rank or a lower one. O(n log n).
  std::vector<std::int64_t> second_level(std::uint32_t top) const {
    std::vector<std::int64_t> entries(order_.size());
    PrefixCount begins{sections_.count()}, ends{sections_.count()};
    for (std::size_t rank = order_.size(); rank-- > 0;) {
      const std::uint32_t item = order_[rank];
      entries[rank] = begins.below(hull(item).last) - ends.below(hull(item).first);
      if (item == top || !conflict(item, top)) continue;
      begins.add(hull(item).first);
      ends.add(hull(item).last - 1);
    }
    for (std::size_t i = 1; i < entries.size(); ++i) entries[i] += entries[i - 1];
    return entries;
  }

  const Instance& instance_;
  const Sections& sections_;
  std::vector<std::uint32_t> order_, rank_;
};

/// TVM's unified static memory planner, hill_climb: first fit in decreasing order of size, then of conflicts, then of
/// ids. After each attempt two buffers change places in the order: a conflict of a buffer on top, and another conflict
/// of that buffer (26 of 100) or a conflict of one of its conflicts. A layout that is not lower than the last accepted
/// one is accepted too with a probability of 50 * d / h / n percent: d bytes higher, at a height of h, after n
/// attempts. The last accepted one is the answer. Ends when the height is the most bytes live at once. As published, an
/// attempt that changes nothing undoes the last change again. O(attempts) placements, see place_in_order.
/// Source: github.com/apache/tvm, src/tir/usmp/algo/hill_climb.cc, 2023.
class TvmHillClimb final : public Planner {
 public:
  explicit TvmHillClimb(const Options& options)
      : attempts_{count_of<std::int64_t>("tvm-hill-climb", options, "attempts", 1'000'000'000)} {}

  Layout plan(const Instance& instance, const PackingLimits& limits) override {
    const Sections sections{instance};
    const Bytes load = load_of(instance);
    HillClimb climb{instance, sections};
    const EndOfTime end{limits};
    TvmRandom random;
    std::vector<Bytes> taken;
    Bytes taken_height;
    HillClimb::Ranks swapped{0, 0};
    for (std::int64_t attempt = 0; attempt < attempts_; ++attempt) {
      std::vector<Bytes> now = climb.place();
      const Bytes height = height_of(instance, now);
      const auto chance = [&] {
        return 50 * static_cast<double>((height - taken_height).count()) / static_cast<double>(height.count());
      };
      if (attempt == 0 || height < taken_height ||
          static_cast<double>(random.below(100)) < std::floor(std::floor(chance()) / static_cast<double>(attempt))) {
        taken = std::move(now);
        taken_height = height;
        if (height <= load) break;
      } else {
        climb.swap(swapped);
      }
      if (end.reached()) break;
      if (const std::optional<HillClimb::Ranks> chosen = climb.choose(taken, taken_height, random)) {
        swapped = *chosen;
        climb.swap(swapped);
      }
    }
    return judged(instance, std::move(taken), limits);
  }

 private:
  std::int64_t attempts_;
};

const RegisterPool kTvmHillClimb{
    {.name = "tvm-hill-climb",
     .summary = "offline: TVM's hill climbing over the order of a first fit",
     .paper = "github.com/apache/tvm, src/tir/usmp/algo/hill_climb.cc",
     .options = {{"attempts", "500", "number", "layouts that are tried"}, alignment_option()},
     .make = {},
     .plan = [](const Options& options) { return std::make_unique<TvmHillClimb>(options); }}};

}  // namespace
}  // namespace tidepool
