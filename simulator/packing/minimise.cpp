#include "simulator/packing/minimise.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <numeric>
#include <utility>

#include "simulator/packing/bounds/bounds.hpp"
#include "simulator/packing/end_of_time.hpp"
#include "simulator/packing/greedy.hpp"
#include "simulator/packing/orders.hpp"
#include "simulator/packing/search/exact_search.hpp"

namespace tidepool {
namespace {

using Answer = ExactSearch::Answer;

/// The rules in the order in which they are tried.
std::vector<SearchRule> rules() {
  using Section = SearchRule::Section;
  using Piece = SearchRule::Piece;
  std::vector<SearchRule> rules;
  for (const Piece piece : {Piece::kLongest, Piece::kLargestArea, Piece::kLargest})
    for (const Section section :
         {Section::kTight, Section::kWeighted, Section::kFewest, Section::kTightest, Section::kLowest})
      rules.push_back({.section = section, .piece = piece});
  return rules;
}

/// 1, 1, 2, 1, 1, 2, 4, ...: the lengths of runs that lose least where luck decides when one succeeds (Luby, Sinclair &
/// Zuckerman, "Optimal Speedup of Las Vegas Algorithms", 1993).
/// @param turn  from 1
std::uint64_t luby(std::uint64_t turn) {
  for (;;) {
    const std::uint64_t whole = std::bit_ceil(turn + 1);  // turns up to whole - 1 are a complete pattern
    if (turn + 1 == whole) return whole / 2;
    turn -= whole / 2 - 1;
  }
}

class Minimiser {
 public:
  Minimiser(const Instance& instance, const PackingLimits& limits, double effort,
            std::span<const std::unique_ptr<Planner>> others)
      : instance_{instance},
        limits_{limits},
        effort_{effort},
        others_{others},
        end_{limits},
        early_{first_part(limits)},
        sections_{instance},
        problem_{reduce(instance, sections_)} {}

  Layout run() {
    const HeightBound bound = height_bound(problem_);
    proved_ = bound.height;
    layout_.proof = bound.proof;
    for (const Item& item : instance_.items)  // those of no bytes are no part of the problem, but count where they lie
      if (item.size == Bytes{} && item.fixed && item.fixed->count() > proved_ * problem_.unit) {
        proved_ = (item.fixed->count() + problem_.unit - 1) / problem_.unit;
        layout_.proof = "fixed";
      }
    low_ = std::max(proved_, limits_.enough.count() / problem_.unit);
    one_pass();
    if (high_ > low_ && !end_.reached()) search();
    ask_others();
    layout_.lower_bound = std::min(Bytes{proved_ * problem_.unit}, layout_.height);
    if (layout_.height <= limits_.capacity)
      layout_.outcome = Outcome::kOk;
    else
      layout_.outcome = layout_.lower_bound > limits_.capacity ? Outcome::kInfeasible : Outcome::kTimeLimit;
    return std::move(layout_);
  }

 private:
  static constexpr std::uint64_t kUnlimited = std::numeric_limits<std::uint64_t>::max();
  static constexpr std::int64_t kFirstPart = 8, kPartOfOthers = 4;  // an eighth, and a quarter for each at most
  static constexpr std::uint64_t kManyCells = 1'000'000;            // a run takes a tenth of a second

  static PackingLimits first_part(PackingLimits limits) {
    if (limits.time) limits.time = *limits.time / kFirstPart;
    return limits;
  }

  void keep(std::vector<Bytes> offsets) {
    const Bytes height = height_of(instance_, offsets);
    if (!layout_.offsets.empty() && height >= layout_.height) return;
    layout_.offsets = std::move(offsets);
    layout_.height = height;
    high_ = (height.count() + problem_.unit - 1) / problem_.unit;
  }

  void one_pass() {
    for (const PackingOrder order : kPackingOrders) {
      const std::vector<std::uint32_t> sorted = in_order(instance_, order);
      for (const Fit fit : {Fit::kFirst, Fit::kBest}) {
        keep(place_in_order(instance_, sections_, sorted, fit));
        if (high_ <= low_ || end_.reached()) return;
      }
    }
  }

  /// Once.
  void ask_others() {
    for (const std::unique_ptr<Planner>& other : std::exchange(others_, {})) {
      if (high_ <= low_ || end_.reached()) return;
      PackingLimits limits = limits_;
      if (limits.time) limits.time = *limits.time / kPartOfOthers;
      keep(other->plan(instance_, limits).offsets);
    }
  }
  /// Where the search has had its first part of what it may spend: an easy instance needs no other planner.
  void ask_others_in_time(const ExactSearch& search) {
    if (limits_.time ? early_.reached() : static_cast<double>(search.work()) > most_work() / kFirstPart) ask_others();
  }

  /// What is to be searched: pieces on top of others that live in all sections.
  struct Rest {
    std::vector<std::uint32_t> pieces;
    std::int64_t base = 0;
  };

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
    cells_ = 0;
    for (const SectionRange range : problem_.ranges) cells_ += range.last - range.first;
    if (cells_ > kCells) return;
    std::vector<std::int64_t> offsets(problem_.pieces.size());
    Rest rest;
    rest.base = set_aside(rest.pieces, offsets);
    const PackingProblem part = part_of(problem_, rest.pieces);
    ExactSearch search{part};
    if (cells_ > kManyCells)
      search_large(search, rest, offsets);
    else
      search_small(search, rest, offsets);
  }

  /// Many short runs: one that succeeds often does so at once. An eighth of the work goes into long ones that may prove
  /// that there is nothing to succeed in.
  void search_small(ExactSearch& search, const Rest& rest, std::vector<std::int64_t>& offsets) {
    constexpr std::uint64_t kFailures = 500, kShareOfProofs = 8;
    constexpr SearchRule kProof{.section = SearchRule::Section::kWeighted, .forget = false};
    const std::vector<SearchRule> all = rules();
    std::uint64_t proofs = 0;  // work
    for (std::size_t turn = 0; low_ < high_; ++turn) {
      ask_others_in_time(search);
      const std::size_t cycle = turn / all.size();
      if (const std::uint64_t before = search.work(); cycle > 0 && proofs < before / kShareOfProofs) {
        const Answer answer = attempt(search, rest, offsets, 0, kUnlimited, before / kShareOfProofs, kProof);
        proofs += search.work() - before;
        if (over(search)) return;
        if (answer != Answer::kLimit) continue;
      }
      SearchRule rule = all[turn % all.size()];
      rule.shuffle = cycle;
      rule.forget = cycle % 2 == 1 || rule.piece == SearchRule::Piece::kLongest;
      // The least height that is not ruled out, and two above it: what is easier to find narrows the range.
      for (const std::int64_t share : {0, 1, 4}) {
        const Answer answer = attempt(search, rest, offsets, share, kFailures * luby(cycle + 1), kUnlimited, rule);
        if (over(search)) return;
        if (answer != Answer::kLimit || high_ - low_ == 1) break;
      }
    }
  }

  /// Few runs, long enough to go through all pieces; heights somewhat above the bound first.
  void search_large(ExactSearch& search, const Rest& rest, std::vector<std::int64_t>& offsets) {
    constexpr std::size_t kVisits = 6, kMostVisits = 36;  // of each cell in a run, as powers of two
    constexpr std::array<std::int64_t, 4> kShares{1, 4, 1, 0};
    std::vector<SearchRule> all = rules();
    std::stable_partition(all.begin(), all.end(), [](SearchRule rule) {
      return rule.section == SearchRule::Section::kTight || rule.section == SearchRule::Section::kTightest;
    });
    for (std::size_t turn = 0; low_ < high_ && !over(search); ++turn) {
      ask_others_in_time(search);
      const std::size_t cycle = turn / all.size();
      SearchRule rule = all[turn % all.size()];
      rule.shuffle = cycle;
      rule.forget = true;
      attempt(search, rest, offsets, kShares[turn % kShares.size()], kUnlimited,
              cells_ << std::min(kVisits + cycle, kMostVisits), rule);
    }
  }

  double most_work() const { return effort_ * (1e6 + static_cast<double>(cells_) / 4); }
  bool over(const ExactSearch& search) const {
    return end_.reached() || (!limits_.time && static_cast<double>(search.work()) > most_work());
  }

  /// Looks for a layout of a height `share` eighths of the way from the bound to the best.
  /// @param failures, work  ends of the run
  Answer attempt(ExactSearch& search, const Rest& rest, std::vector<std::int64_t>& offsets, std::int64_t share,
                 std::uint64_t failures, std::uint64_t work, SearchRule rule) {
    const std::int64_t gap = high_ - low_;
    const std::int64_t target = std::min(low_ + gap / 8 * share + gap % 8 * share / 8, high_ - 1);
    const std::uint64_t before = search.work();
    const Answer answer =
        search.run(target - rest.base, failures, rule, [&] { return search.work() - before > work || over(search); });
    if (answer == Answer::kNone) {
      proved_ = low_ = target + 1;
      layout_.proof = "search";
    }
    if (answer != Answer::kFound) return answer;
    const std::vector<std::int64_t> found = search.offsets();
    for (std::size_t k = 0; k < rest.pieces.size(); ++k) offsets[rest.pieces[k]] = rest.base + found[k];
    std::vector<Bytes> bytes(instance_.items.size());
    for (std::size_t i = 0; i < instance_.items.size(); ++i)
      if (instance_.items[i].fixed) bytes[i] = *instance_.items[i].fixed;
    for (std::size_t i = 0; i < offsets.size(); ++i) bytes[problem_.pieces[i].item] = Bytes{offsets[i] * problem_.unit};
    keep(std::move(bytes));
    return answer;
  }

  const Instance& instance_;
  const PackingLimits& limits_;
  double effort_;
  std::span<const std::unique_ptr<Planner>> others_;
  EndOfTime end_, early_;
  std::uint64_t cells_ = 0;  // pieces by section
  Sections sections_;
  PackingProblem problem_;
  Layout layout_;
  // Heights in units: no layout is lower; what is looked for is no lower; the best.
  std::int64_t proved_ = 0, low_ = 0, high_ = std::numeric_limits<std::int64_t>::max();
};

}  // namespace

Layout minimise(const Instance& instance, const PackingLimits& limits, double effort,
                std::span<const std::unique_ptr<Planner>> others) {
  return Minimiser{instance, limits, effort, others}.run();
}

}  // namespace tidepool
