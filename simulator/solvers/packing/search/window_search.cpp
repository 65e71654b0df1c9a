#include "simulator/solvers/packing/search/window_search.hpp"

#include <algorithm>
#include <numeric>

#include "simulator/solvers/packing/search/search_rules.hpp"

namespace tidepool {
namespace {

constexpr std::uint32_t kFirstPart = 4;  // the first window has a quarter of all sections
constexpr std::uint32_t kGrowth = 16;    // each further window has a 16th of all sections more at each end

}  // namespace

PackingProblem clipped(const PackingProblem& problem, SectionRange window) {
  PackingProblem part;
  part.unit = problem.unit;
  part.sections = problem.sections;
  for (std::uint32_t i = 0; i < problem.pieces.size(); ++i) {
    PackingProblem::Piece piece = problem.pieces[i];
    const auto lives = problem.lives(piece);
    piece.item = i;
    piece.first = static_cast<std::uint32_t>(part.ranges.size());
    for (const SectionRange range : lives)
      if (range.first < window.last && range.last > window.first)
        part.ranges.push_back({std::max(range.first, window.first), std::min(range.last, window.last)});
    piece.last = static_cast<std::uint32_t>(part.ranges.size());
    if (piece.last > piece.first) part.pieces.push_back(piece);
  }
  std::vector<std::uint32_t> all(part.pieces.size());
  std::iota(all.begin(), all.end(), 0U);
  return part_of(part, all);
}

WindowSearch::WindowSearch(const PackingProblem& problem) : problem_{&problem} {}

WindowSearch::Answer WindowSearch::run(std::int64_t capacity, const std::function<bool(std::uint64_t)>& interrupted) {
  const std::uint32_t sections = problem_->sections, step = std::max(1U, sections / kGrowth);
  begin_ = work_;
  offsets_.assign(problem_->pieces.size(), -1);
  SectionRange window = first_window();
  for (;;) {
    const Answer answer = solve(window, capacity, interrupted);
    const bool whole = window == SectionRange{0, sections};
    if (answer != Answer::kFound) {
      const bool at_begin = window.first > 0 && (window.last == sections || random_.below(2) == 0);
      hardest_ = at_begin ? window.first : window.last - 1;
      return answer;
    }
    if (whole) return answer;
    window = {window.first - std::min(window.first, step), std::min(sections, window.last + step)};
  }
}

/// A window around the section at which the last attempt ended. In every third attempt, a window that begins, in turn,
/// at the first section or at a random one.
SectionRange WindowSearch::first_window() {
  constexpr std::uint64_t kAnew = 3;
  const std::uint32_t sections = problem_->sections, length = std::max(1U, sections / kFirstPart);
  const std::uint64_t attempt = attempts_++;
  const std::uint32_t latest = sections - length;
  std::uint32_t first = hardest_ - std::min(hardest_, length / 2);
  if (attempt % kAnew == 0) first = attempt / kAnew % 2 == 0 ? 0 : random_.below(latest + 1);
  first = std::min(first, latest);
  return {first, first + length};
}

WindowSearch::Answer WindowSearch::solve(SectionRange window, std::int64_t capacity,
                                         const std::function<bool(std::uint64_t)>& interrupted) {
  constexpr std::uint64_t kRuns = 15, kFailures = 300;
  constexpr double kElsewhere = 0.03;
  constexpr std::uint32_t kOwnOrder = 4, kLocally = 3;  // one run in so many
  const PackingProblem part = clipped(*problem_, window);
  const bool first = std::all_of(offsets_.begin(), offsets_.end(), [](std::int64_t offset) { return offset < 0; });
  const std::vector<SearchRule> rules = search_rules();
  ExactSearch search{part};
  work_ += part.pieces.size() + part.ranges.size() + part.sections;
  std::vector<std::int64_t> guide;
  for (const PackingProblem::Piece& piece : part.pieces) guide.push_back(offsets_[piece.item]);
  Answer answer = Answer::kLimit;
  for (std::uint64_t k = 0; k < kRuns && answer == Answer::kLimit; ++k) {
    SearchRule rule = rules[random_.below(static_cast<std::uint32_t>(rules.size()))];
    rule.shuffle = 1 + random_.bits();
    rule.forget = random_.below(2) == 0;
    if (!first && (k == 0 || random_.below(kOwnOrder) > 0)) {
      rule.piece = SearchRule::Piece::kGuided;
      GuideChange change{.window = {0, 0}, .elsewhere = k == 0 ? 0 : kElsewhere * random_.next()};
      if (k % kLocally == 2) change.window = window_around(part, random_.below(part.sections), random_);
      search.guide(guide_near(part, guide, capacity, change, random_));
    }
    const std::uint64_t before = search.work();
    answer = search.run(capacity, kFailures * luby(k + 1), rule,
                        [&] { return interrupted(work_ - begin_ + search.work() - before); });
    work_ += search.work() - before;
    if (interrupted(work_ - begin_)) break;
  }
  if (answer != Answer::kFound) return answer;
  const std::vector<std::int64_t> found = search.offsets();
  for (std::size_t k = 0; k < found.size(); ++k) offsets_[part.pieces[k].item] = found[k];
  return answer;
}

}  // namespace tidepool
