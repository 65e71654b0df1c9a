#include "simulator/solvers/packing/search/coarse_search.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

namespace tidepool {
namespace {

constexpr std::size_t kManyPieces = 65'536;  // with more, the limits hold within a layout, too, since it takes seconds

}  // namespace

CoarseSearch::CoarseSearch(const PackingProblem& problem)
    : problem_{&problem}, ejection_{problem}, sections_of_(problem.pieces.size()), hard_(problem.pieces.size()) {
  for (std::size_t i = 0; i < problem.pieces.size(); ++i) {
    for (const SectionRange range : problem.lives(problem.pieces[i])) sections_of_[i] += range.last - range.first;
    hard_[i] = problem.pieces[i].fixed >= 0 ? 1 : 0;
  }
  const auto size = [&](std::uint32_t i) { return static_cast<double>(problem.pieces[i].size); };
  const auto sections = [&](std::uint32_t i) { return static_cast<double>(sections_of_[i]); };
  const auto add = [&](const auto& worth) {
    std::vector<std::uint32_t>& order = orders_.emplace_back(problem.pieces.size());
    std::iota(order.begin(), order.end(), 0U);
    std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) { return worth(a) > worth(b); });
  };
  add([&](std::uint32_t i) { return size(i) * sections(i); });
  add([&](std::uint32_t i) { return std::pair{size(i), sections(i)}; });
  add([&](std::uint32_t i) { return std::pair{sections(i), size(i)}; });
}

/// The pieces that the exact search places, in ascending order.
std::vector<std::uint32_t> CoarseSearch::choose(double share, std::uint64_t most_cells) const {
  auto wanted = static_cast<std::size_t>(share * static_cast<double>(problem_->pieces.size()));
  std::vector<std::uint32_t> chosen;
  std::uint64_t cells = 0;
  for (std::uint32_t i = 0; i < hard_.size(); ++i)
    if (hard_[i]) {
      chosen.push_back(i);
      cells += sections_of_[i];
    }
  for (const std::uint32_t i : orders_.front()) {
    if (wanted-- == 0 || cells + sections_of_[i] > most_cells) break;
    if (hard_[i]) continue;
    chosen.push_back(i);
    cells += sections_of_[i];
  }
  std::sort(chosen.begin(), chosen.end());
  return chosen;
}

std::optional<std::vector<std::int64_t>> CoarseSearch::run(double share, Limits limits, SearchRule rule,
                                                           const std::function<bool(std::uint64_t)>& interrupted) {
  const std::uint64_t work_before = work_;
  const std::vector<std::uint32_t> chosen = choose(share, limits.cells);
  const PackingProblem part = part_of(*problem_, chosen);
  std::uint64_t cells = 0;
  for (const SectionRange range : part.ranges) cells += range.last - range.first;
  ExactSearch search{part};
  const std::uint64_t most = cells * limits.visits;
  const auto answer = search.run(limits.capacity, std::numeric_limits<std::uint64_t>::max(), rule,
                                 [&] { return search.work() > most || interrupted(search.work()); });
  work_ += search.work() + cells;
  if (answer != ExactSearch::Answer::kFound) return {};

  const std::vector<std::int64_t> found = search.offsets();
  std::vector<std::int64_t> offsets(problem_->pieces.size(), -1);
  Occupancy occupancy{problem_->sections};
  for (std::size_t k = 0; k < chosen.size(); ++k) {
    const PackingProblem::Piece& piece = problem_->pieces[chosen[k]];
    offsets[chosen[k]] = found[k];
    occupancy.take(problem_->lives(piece), found[k], piece.size);
  }
  Filled best{.offsets = {}, .waiting = {}, .height = std::numeric_limits<std::int64_t>::max()};
  for (std::size_t k = 0; k < kFills && best.height > limits.capacity && !interrupted(work_ - work_before);
       ++k, ++turn_)
    if (Filled filled = fill(orders_[turn_ / 2 % orders_.size()], turn_ % 2 == 0 ? Fit::kFirst : Fit::kBest,
                             limits.capacity, occupancy, offsets, [&] { return interrupted(work_ - work_before); });
        filled.height < best.height)
      best = std::move(filled);
  if (best.height > limits.capacity && !best.offsets.empty()) {
    offsets = best.offsets;
    for (const std::uint32_t i : best.waiting) offsets[i] = -1;
    const std::uint64_t before = ejection_.work();
    const bool repaired = ejection_.run(offsets, limits.capacity, [&](std::uint64_t spent) {
      return spent > most || interrupted(work_ - work_before + spent);
    });
    work_ += ejection_.work() - before;
    if (repaired) return offsets;
  }
  if (best.height >= limits.below) return {};
  return std::move(best.offsets);
}

/// Places the pieces whose offset is -1: first those that fit within the capacity, then the others, which end above it.
CoarseSearch::Filled CoarseSearch::fill(const std::vector<std::uint32_t>& order, Fit fit, std::int64_t capacity,
                                        Occupancy occupancy, std::vector<std::int64_t> offsets,
                                        const std::function<bool()>& is_over) {
  Filled filled{.offsets = std::move(offsets), .waiting = {}, .height = 0};
  const std::uint64_t piece_work = OrderSearch::piece_work(order.size());
  const auto place = [&](std::uint32_t i, std::int64_t most) {
    work_ += piece_work;
    const PackingProblem::Piece& piece = problem_->pieces[i];
    const std::int64_t offset = occupancy.find(problem_->lives(piece), piece.size, piece.alignment, fit);
    if (offset + piece.size > most) return false;
    filled.offsets[i] = offset;
    occupancy.take(problem_->lives(piece), offset, piece.size);
    filled.height = std::max(filled.height, offset + piece.size);
    return true;
  };
  for (std::size_t k = 0; k < order.size(); ++k) {
    const std::uint32_t i = order[k];
    if (order.size() > kManyPieces && k % 256 == 0 && is_over())
      return {.offsets = {}, .waiting = {}, .height = std::numeric_limits<std::int64_t>::max()};
    if (filled.offsets[i] < 0 && !place(i, capacity)) filled.waiting.push_back(i);
  }
  for (const std::uint32_t i : filled.waiting) place(i, std::numeric_limits<std::int64_t>::max());
  if (!filled.waiting.empty()) hard_[filled.waiting.front()] = 1;
  return filled;
}

}  // namespace tidepool
