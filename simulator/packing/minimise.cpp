#include "simulator/packing/minimise.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <limits>
#include <numeric>
#include <utility>

#include "simulator/packing/bounds/bounds.hpp"
#include "simulator/packing/greedy.hpp"
#include "simulator/packing/orders.hpp"
#include "simulator/packing/search/exact_search.hpp"

namespace tidepool {
namespace {

using Clock = std::chrono::steady_clock;
using Answer = ExactSearch::Answer;

/// The rules in the order in which they are tried.
std::vector<SearchRule> rules() {
  using Section = SearchRule::Section;
  using Piece = SearchRule::Piece;
  std::vector<SearchRule> rules;
  for (const Piece piece : {Piece::kLongest, Piece::kLargestArea, Piece::kLargest})
    for (const Section section :
         {Section::kTight, Section::kWeighted, Section::kFewest, Section::kTightest, Section::kLowest})
      rules.push_back({.section = section, .piece = piece, .forget = piece == Piece::kLongest});
  return rules;
}

class Minimiser {
 public:
  Minimiser(const Instance& instance, const PackingLimits& limits, double effort)
      : instance_{instance},
        limits_{limits},
        effort_{effort},
        sections_{instance},
        problem_{reduce(instance, sections_)} {
    if (limits.time)
      deadline_ = Clock::now() + std::chrono::nanoseconds{std::min<std::int64_t>(limits.time->count(), kLongest)};
  }

  Layout run() {
    const HeightBound bound = height_bound(problem_);
    low_ = bound.height;
    layout_.proof = bound.proof;
    for (const Item& item : instance_.items)  // those of no bytes are no part of the problem, but count where they lie
      if (item.size == Bytes{} && item.fixed && item.fixed->count() > low_ * problem_.unit) {
        low_ = (item.fixed->count() + problem_.unit - 1) / problem_.unit;
        layout_.proof = "fixed";
      }
    one_pass();
    if (high_ > low_ && !interrupted()) search();
    layout_.lower_bound = std::min(Bytes{low_ * problem_.unit}, layout_.height);
    if (layout_.height <= limits_.capacity)
      layout_.outcome = Outcome::kOk;
    else
      layout_.outcome = layout_.lower_bound > limits_.capacity ? Outcome::kInfeasible : Outcome::kTimeLimit;
    return std::move(layout_);
  }

 private:
  static constexpr std::int64_t kLongest = 1'000'000'000'000'000;  // ns; far from the clock's end

  bool interrupted() const {
    return (limits_.stop && limits_.stop->load(std::memory_order_relaxed)) || (deadline_ && Clock::now() >= *deadline_);
  }

  void keep(std::vector<Bytes> offsets) {
    const Bytes height = height_of(instance_, offsets);
    if (!layout_.offsets.empty() && height >= layout_.height) return;
    layout_.offsets = std::move(offsets);
    layout_.height = height;
    high_ = (height.count() + problem_.unit - 1) / problem_.unit;
  }

  void one_pass() {
    constexpr std::array kOrders{PackingOrder::kSize, PackingOrder::kSizeLife, PackingOrder::kArea, PackingOrder::kLife,
                                 PackingOrder::kBirth};
    constexpr std::size_t kMany = 200'000;  // items: a pass takes seconds
    for (const PackingOrder order : kOrders) {
      const std::vector<std::uint32_t> sorted = in_order(instance_, order);
      for (const Fit fit : {Fit::kFirst, Fit::kBest}) {
        keep(place_in_order(instance_, sections_, sorted, fit));
        if (high_ <= low_ || interrupted()) return;
        if (instance_.items.size() > kMany) break;
      }
      if (instance_.items.size() > kMany && order == PackingOrder::kSizeLife) return;
    }
  }

  /// Pieces that live in all sections lie at the bottom in some layout of least height: what was below moves up.
  std::int64_t set_aside(std::vector<std::uint32_t>& rest, std::vector<std::int64_t>& offsets) const {
    std::int64_t base = 0;
    for (std::uint32_t i = 0; i < problem_.pieces.size(); ++i) {
      const auto lives = problem_.lives(problem_.pieces[i]);
      const bool always = lives.size() == 1 && lives.front() == SectionRange{0, problem_.sections};
      if (!always || problem_.has_fixed || problem_.has_alignment) {
        rest.push_back(i);
        continue;
      }
      offsets[i] = base;
      base += problem_.pieces[i].size;
    }
    return base;
  }

  void search() {
    constexpr std::uint64_t kCells = 100'000'000;  // pieces by section: a gigabyte
    constexpr std::uint64_t kManyCells = 5'000'000;
    std::uint64_t cells = 0;
    for (const SectionRange range : problem_.ranges) cells += range.last - range.first;
    if (cells > kCells) return;
    std::vector<std::uint32_t> rest;
    std::vector<std::int64_t> offsets(problem_.pieces.size());
    const std::int64_t base = set_aside(rest, offsets);
    const PackingProblem part = part_of(problem_, rest);
    ExactSearch search{part};
    const std::vector<SearchRule> all = rules();
    constexpr std::uint64_t kFirstFailures = 500, kFirstFailuresOfMany = 20'000;
    std::uint64_t failures = cells > kManyCells ? kFirstFailuresOfMany : kFirstFailures;
    for (std::size_t turn = 0; low_ < high_; ++turn) {
      if (turn > 0 && turn % all.size() == 0) failures *= 2;
      // The least height that is not ruled out, and two above it: what is easier to find narrows the range. Where a run
      // takes seconds, the easier ones come first.
      static constexpr std::array<std::int64_t, 3> kUp{0, 1, 4}, kLarge{1, 4, 0};
      for (const std::int64_t share : cells > kManyCells ? kLarge : kUp) {
        const std::int64_t target = std::min(low_ + (high_ - low_) * share / 8, high_ - 1);
        SearchRule rule = all[turn % all.size()];
        rule.shuffle = turn / all.size();
        const Answer answer = search.run(target - base, failures, rule, [&] {
          return interrupted() || (!limits_.time && static_cast<double>(search.work()) > effort_ * 1e6);
        });
        if (answer == Answer::kFound) {
          const std::vector<std::int64_t> found = search.offsets();
          for (std::size_t k = 0; k < rest.size(); ++k) offsets[rest[k]] = base + found[k];
          std::vector<Bytes> bytes(instance_.items.size());
          for (std::size_t i = 0; i < instance_.items.size(); ++i)
            if (instance_.items[i].fixed) bytes[i] = *instance_.items[i].fixed;
          for (std::size_t i = 0; i < offsets.size(); ++i)
            bytes[problem_.pieces[i].item] = Bytes{offsets[i] * problem_.unit};
          keep(std::move(bytes));
          break;
        }
        if (answer == Answer::kNone) {
          low_ = target + 1;
          layout_.proof = "search";
          break;
        }
        if (interrupted() || (!limits_.time && static_cast<double>(search.work()) > effort_ * 1e6)) return;
        if (high_ - low_ == 1) break;
      }
    }
  }

  const Instance& instance_;
  const PackingLimits& limits_;
  double effort_;
  std::optional<Clock::time_point> deadline_;
  Sections sections_;
  PackingProblem problem_;
  Layout layout_;
  std::int64_t low_ = 0, high_ = std::numeric_limits<std::int64_t>::max();  // heights in units: bound and best
};

}  // namespace

Layout minimise(const Instance& instance, const PackingLimits& limits, double effort) {
  return Minimiser{instance, limits, effort}.run();
}

}  // namespace tidepool
