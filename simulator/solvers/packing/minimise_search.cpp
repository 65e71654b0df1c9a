#include <algorithm>
#include <array>
#include <iterator>
#include <optional>
#include <utility>

#include "simulator/solvers/packing/minimiser.hpp"
#include "simulator/solvers/packing/search/search_rules.hpp"

namespace tidepool {
namespace {

constexpr std::size_t kManyPieces = 1'000;  // more than a search can place without waste

}  // namespace

void Minimiser::search() {
  set_aside();
  orders_.emplace(part_);
  while (orders_->passes() < OrderSearch::kBestStarts && low_ < high_ && !over()) attempt_order();
  starting_ = false;
  std::uint64_t cells = 0;  // pairs of a piece and a section in which it lives
  for (const SectionRange range : part_.ranges) cells += range.last - range.first;
  constexpr std::uint64_t kManyCells = 1'000'000;  // with more, a run takes at least a tenth of a second
  if (cells <= kManyCells) search_small();
  while (low_ < high_ && !over()) improve();
}

/// Sets aside the pieces that live in all sections, if no piece is fixed or aligned: some layout of least height has
/// them at the bottom, since pieces below them can move up.
void Minimiser::set_aside() {
  for (std::uint32_t i = 0; i < problem_.pieces.size(); ++i) {
    const auto lives = problem_.lives(problem_.pieces[i]);
    const bool always = lives.size() == 1 && lives.front() == SectionRange{0, problem_.sections};
    if (always && !problem_.has_fixed && !problem_.has_alignment)
      base_ += problem_.pieces[i].size;
    else
      rest_.push_back(i);
  }
  part_ = part_of(problem_, rest_);
}

/// Makes many short runs, since successful runs are often short. An eighth of the work goes into long runs, which may
/// prove that no layout of their height exists. After the first part, three quarters go into searches that start from
/// layouts. If there are many pieces, half of the work goes into improve() instead.
void Minimiser::search_small() {
  constexpr std::uint64_t kFailures = 500, kShareOfProofs = 8, kShareOfOrders = 2;
  constexpr SearchRule kProof{.section = SearchRule::Section::kWeighted, .forget = false};
  ExactSearch search{part_};
  ExactSearch guided{part_}, completion{part_};
  WindowSearch windows{part_};
  const bool many = part_.pieces.size() >= kManyPieces;
  const std::vector<SearchRule> all = search_rules();
  std::uint64_t proofs = 0;  // work
  for (std::size_t turn = 0; low_ < high_; ++turn) {
    while (many && low_ < high_ && improving_ < work_ / 2 && !over()) improve();
    while (!many && low_ < high_ && orders_->work() < work_ / kShareOfOrders && !over()) attempt_order();
    const std::size_t cycle = turn / all.size();
    if (const std::uint64_t before = search.work(); cycle > 0 && proofs < before / kShareOfProofs) {
      const Answer answer = attempt(search, 0, kUnlimited, before / kShareOfProofs, kProof);
      proofs += search.work() - before;
      if (over()) return;
      if (answer != Answer::kLimit) continue;
    }
    SearchRule rule = all[turn % all.size()];
    rule.shuffle = cycle;
    rule.forget = cycle % 2 == 1 || rule.piece == SearchRule::Piece::kLongest;
    // The least height that is not ruled out, and two above it: a layout that is easier to find narrows the range.
    for (const std::int64_t share : {0, 1, 4}) {
      const Answer answer = attempt(search, share, kFailures * luby(cycle + 1), kUnlimited, rule);
      if (over()) return;
      if (answer != Answer::kLimit || high_ - low_ == 1) break;
    }
    if (many || !first_part_over()) continue;
    while (low_ < high_ && !over() && guided_work_ + windows_work_ < work_ / 4 * 3)
      if (guided_work_ < 2 * windows_work_)
        attempt_guided(guided);
      else
        attempt_windows(windows, completion);
    if (over()) return;
  }
}

/// Makes an attempt of the search that has had the least work so far: to mend an order, to place the pieces of large
/// areas first, or to repair the best layout.
void Minimiser::improve() {
  const std::uint64_t before = work_;
  if (!improvement_) improvement_.emplace(part_);
  const std::uint64_t orders = orders_->work(), coarse = improvement_->coarse.work(),
                      repair = improvement_->repair.work();
  if (orders <= std::min(coarse, repair))
    attempt_order();
  else if (coarse <= repair)
    attempt_coarse(improvement_->coarse, improvement_->turn++);
  else
    attempt_repair(improvement_->repair);
  improving_ += work_ - before;
}

/// Makes a pass in the next order. Its target is a random height in the lower half of what is left.
void Minimiser::attempt_order() {
  const auto lower = static_cast<std::int64_t>(0.5 * random_.next() * static_cast<double>(high_ - low_));
  const std::int64_t target = std::max(low_, high_ - 1 - lower) - base_;
  const std::uint64_t before = orders_->work();
  const auto found = orders_->run(target, high_ - base_, [&](std::uint64_t work) { return over(work); });
  work_ += orders_->work() - before;
  if (found) keep_found(*found);
}

/// Looks for a layout of the largest pieces, at the height of the bound or somewhat above it, and fills the holes with
/// the other pieces.
void Minimiser::attempt_coarse(CoarseSearch& coarse, std::size_t turn) {
  constexpr std::array<double, 8> kPieces{0.4, 0.3, 0.2, 0.5, 0.35, 0.1, 0.45, 0.25};  // of all
  constexpr std::array<std::int64_t, 3> kShares{0, 2, 4};
  constexpr std::uint64_t kVisits = 64;
  const std::vector<SearchRule> all = tight_rules_first();
  const std::size_t cycle = turn / kPieces.size();
  SearchRule rule = all[(turn + cycle) % all.size()];
  rule.shuffle = cycle / all.size();
  const std::uint64_t before = coarse.work();
  const auto found = coarse.run(kPieces[turn % kPieces.size()],
                                {.capacity = target(kShares[cycle % kShares.size()]) - base_,
                                 .below = high_ - base_,
                                 .cells = kMostCells,
                                 .visits = kVisits},
                                rule, [&](std::uint64_t work) { return over(work); });
  work_ += coarse.work() - before;
  if (found) keep_found(*found);
}

/// Tries to lower the best layout by a share of the gap. The share grows with each success and shrinks with each
/// failure.
void Minimiser::attempt_repair(EjectionSearch& repair) {
  constexpr std::uint64_t kLeast = 30'000'000, kPart = 8;  // most work: kLeast or, if more, a kPart-th of all so far
  constexpr double kSmallest = 1.0 / 1024;
  std::vector<std::int64_t> offsets = best_found();
  const auto lower = static_cast<std::int64_t>(step_ * static_cast<double>(high_ - low_));
  const std::uint64_t before = repair.work(), most = std::max(kLeast, work_ / kPart);
  const bool found = repair.run(offsets, high_ - std::max<std::int64_t>(lower, 1) - base_,
                                [&](std::uint64_t work) { return work > most || over(work); });
  work_ += repair.work() - before;
  step_ = found ? std::min(1.0, step_ * 1.5) : std::max(kSmallest, step_ / 2);
  if (found) keep_found(offsets);
}

/// Looks for a layout that is close to the best one but lower.
void Minimiser::attempt_guided(ExactSearch& search) {
  constexpr std::uint64_t kFailures = 500, kPatience = 20;
  constexpr std::array kEverywhere{0.005, 0.02, 0.1, 0.3};
  constexpr std::array<std::int64_t, 4> kShares{0, 2, 4, 8};
  using Section = SearchRule::Section;
  constexpr std::array kSections{Section::kTight, Section::kWeighted, Section::kFewest, Section::kTightest,
                                 Section::kLowest};
  const std::size_t turn = guided_++;
  const std::int64_t share = kShares[turn / 3 % kShares.size()], most = target(share) - base_;
  const std::vector<std::int64_t> best = best_found();
  const std::uint32_t middle = guided_middle(best, most);
  GuideChange change{.window = window_around(part_, middle, random_), .elsewhere = 0.001};
  if (random_.below(4) == 0) change = {.window = {0, 0}, .elsewhere = kEverywhere[random_.below(kEverywhere.size())]};
  search.guide(guide_near(part_, best, high_ - base_, change, random_));
  const std::uint64_t before = work_;
  attempt(search, share, kFailures * luby(turn / kPatience + 1), kUnlimited,
          {.section = kSections[turn % kSections.size()],
           .piece = SearchRule::Piece::kGuided,
           .forget = turn / kPatience % 2 == 1});
  guided_work_ += work_ - before;
}

/// The middle of the sections that a guide changes: any of them, more often one in which a piece lies above `capacity`.
std::uint32_t Minimiser::guided_middle(const std::vector<std::int64_t>& best, std::int64_t capacity) {
  std::vector<std::uint32_t> above;
  for (std::uint32_t i = 0; i < best.size(); ++i)
    if (best[i] < 0 || best[i] + part_.pieces[i].size > capacity) above.push_back(i);
  if (above.empty() || random_.below(3) == 0) return random_.below(part_.sections);
  const PackingProblem::Piece& piece = part_.pieces[above[random_.below(static_cast<std::uint32_t>(above.size()))]];
  const SectionRange life = part_.lives(piece)[random_.below(piece.last - piece.first)];
  return life.first + random_.below(life.last - life.first);
}

/// Looks for a low layout of a window that grows. If the window does not grow to the whole of part_, looks for a layout
/// of part_ that is near the window's layout and may be higher.
void Minimiser::attempt_windows(WindowSearch& windows, ExactSearch& completion) {
  constexpr std::uint64_t kFailures = 2'000;
  constexpr double kSmallest = 1.0 / 64;
  const bool least = grown_++ % 3 == 2;
  const auto lower = static_cast<std::int64_t>(windows_step_ * static_cast<double>(high_ - low_));
  const std::int64_t height = least ? low_ : high_ - std::max<std::int64_t>(lower, 1);
  const std::uint64_t before = windows.work(), all_before = work_;
  const Answer answer = windows.run(height - base_, [&](std::uint64_t work) { return over(work); });
  work_ += windows.work() - before;
  if (answer == Answer::kNone) {
    proved_ = low_ = height + 1;
    layout_.proof = "search";
  }
  if (!least)
    windows_step_ =
        answer == Answer::kFound ? std::min(1.0, windows_step_ * 1.5) : std::max(kSmallest, windows_step_ * 0.7);
  if (answer == Answer::kFound) keep_found(windows.offsets());
  for (const std::int64_t share : {4, 8}) {
    if (answer != Answer::kLimit || low_ >= high_ || over()) break;
    completion.guide(guide_near(part_, windows.offsets(), high_ - base_, {{0, 0}, 0}, random_));
    attempt(completion, share, kFailures, kUnlimited,
            {.section = SearchRule::Section::kWeighted, .piece = SearchRule::Piece::kGuided});
  }
  windows_work_ += work_ - all_before;
}

std::int64_t Minimiser::target(std::int64_t share) const {
  const std::int64_t gap = high_ - low_;
  return std::min(low_ + gap / 8 * share + gap % 8 * share / 8, high_ - 1);
}

/// Looks for a layout of a height `share` eighths of the way from the bound to the best.
/// @param failures, work  limits of the run
Minimiser::Answer Minimiser::attempt(ExactSearch& search, std::int64_t share, std::uint64_t failures,
                                     std::uint64_t work, SearchRule rule) {
  const std::int64_t height = target(share);
  const std::uint64_t before = search.work();
  const auto spent = [&] { return search.work() - before; };
  const Answer answer = search.run(height - base_, failures, rule, [&] { return spent() > work || over(spent()); });
  work_ += spent();
  if (answer == Answer::kNone) {
    proved_ = low_ = height + 1;
    layout_.proof = "search";
  }
  if (answer == Answer::kFound) keep_found(search.offsets());
  return answer;
}

/// @param found  offsets of the pieces in part_, in units above base_, since these pieces lie above all others
void Minimiser::keep_found(const std::vector<std::int64_t>& found) {
  std::vector<Bytes> offsets(instance_.items.size());
  for (std::size_t i = 0; i < instance_.items.size(); ++i)
    if (instance_.items[i].fixed) offsets[i] = *instance_.items[i].fixed;
  std::size_t next = 0;
  std::int64_t below = 0;
  for (std::uint32_t i = 0; i < problem_.pieces.size(); ++i) {
    const bool searched = next < rest_.size() && rest_[next] == i;
    offsets[problem_.pieces[i].item] = Bytes{(searched ? base_ + found[next] : below) * problem_.unit};
    if (searched)
      ++next;
    else
      below += problem_.pieces[i].size;
  }
  keep(std::move(offsets));
}

/// The best layout without the pieces that live in all sections: pieces above those move down. -1 for pieces whose
/// offset is no whole unit.
std::vector<std::int64_t> Minimiser::best_found() const {
  const auto offset = [&](std::uint32_t i) { return layout_.offsets[problem_.pieces[i].item].count(); };
  // Offset in bytes, and size in units; later the sum of sizes.
  std::vector<std::pair<std::int64_t, std::int64_t>> gone;
  for (std::uint32_t i = 0, next = 0; i < problem_.pieces.size(); ++i)
    if (next < rest_.size() && rest_[next] == i)
      ++next;
    else
      gone.emplace_back(offset(i), problem_.pieces[i].size);
  std::sort(gone.begin(), gone.end());
  for (std::size_t k = 1; k < gone.size(); ++k) gone[k].second += gone[k - 1].second;
  std::vector<std::int64_t> found;
  for (const std::uint32_t i : rest_) {
    const auto above = std::lower_bound(gone.begin(), gone.end(), offset(i),
                                        [](const auto& one, std::int64_t value) { return one.first < value; });
    const std::int64_t below = above == gone.begin() ? 0 : std::prev(above)->second;
    found.push_back(offset(i) % problem_.unit == 0 ? offset(i) / problem_.unit - below : -1);
  }
  return found;
}

}  // namespace tidepool
