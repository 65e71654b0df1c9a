#include "simulator/solvers/packing/search/ejection_search.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>

namespace tidepool {

Neighbours::Neighbours(const PackingProblem& problem) : problem_{&problem}, begin_(problem.sections + std::size_t{2}) {
  while (leaves_ < problem.sections) leaves_ *= 2;
  nodes_.resize(2 * std::size_t{leaves_});
  for (std::uint32_t i = 0; i < problem.pieces.size(); ++i)
    for (const SectionRange range : problem.lives(problem.pieces[i])) {
      ++begin_[range.first + 1];
      for (std::uint32_t a = range.first + leaves_, b = range.last + leaves_; a < b; a >>= 1, b >>= 1) {
        if (a & 1) nodes_[a++].push_back(i);
        if (b & 1) nodes_[--b].push_back(i);
      }
    }
  std::partial_sum(begin_.begin(), begin_.end(), begin_.begin());
  starts_.resize(begin_.back());
  std::vector<std::uint32_t> next{begin_};
  for (std::uint32_t i = 0; i < problem.pieces.size(); ++i)
    for (const SectionRange range : problem.lives(problem.pieces[i])) starts_[next[range.first]++] = i;
}

EjectionSearch::EjectionSearch(const PackingProblem& problem)
    : problem_{&problem}, neighbours_{problem}, seen_(problem.pieces.size()) {
  for (const PackingProblem::Piece& piece : problem.pieces) {
    std::uint32_t sections = 0;
    for (const SectionRange range : problem.lives(piece)) sections += range.last - range.first;
    worth_.push_back(static_cast<double>(piece.size) * std::sqrt(sections));
  }
}

bool EjectionSearch::run(std::vector<std::int64_t>& offsets, std::int64_t capacity,
                         const std::function<bool(std::uint64_t)>& interrupted) {
  constexpr std::uint32_t kAsk = 16;
  offsets_ = offsets;
  trouble_.assign(offsets.size(), 1.0);
  waiting_.clear();
  for (std::uint32_t i = 0; i < offsets.size(); ++i) {
    if (offsets_[i] >= 0 && offsets_[i] + problem_->pieces[i].size <= capacity) continue;
    if (problem_->pieces[i].fixed >= 0) return false;
    offsets_[i] = -1;
    waiting_.push_back(i);
  }
  const std::uint64_t before = work_;
  for (std::uint32_t k = 1; !waiting_.empty(); ++k) {
    if (k % kAsk == 0 && interrupted(work_ - before)) return false;
    const std::uint32_t piece = waiting_.back();
    waiting_.pop_back();
    if (!place(piece, capacity)) return false;
  }
  offsets = offsets_;
  return true;
}

/// @return  false if the piece fits nowhere
bool EjectionSearch::place(std::uint32_t piece, std::int64_t capacity) {
  find_obstacles(piece);
  bool free = false;
  const std::int64_t offset = cheapest(problem_->pieces[piece], capacity, free);
  if (offset < 0) return false;
  if (!free) {
    const std::int64_t top = offset + problem_->pieces[piece].size;
    for (const Obstacle& obstacle : by_offset_) {
      if (obstacle.offset >= top || obstacle.top <= offset) continue;
      offsets_[obstacle.piece] = -1;
      waiting_.push_back(obstacle.piece);
    }
    trouble_[piece] += 1;
  }
  offsets_[piece] = offset;
  return true;
}

void EjectionSearch::find_obstacles(std::uint32_t piece) {
  constexpr std::uint64_t kStepWork = 100, kObstacleWork = 10;
  by_offset_.clear();
  seen_[piece] = ++step_;
  neighbours_.visit(piece, [&](std::uint32_t j) {
    if (offsets_[j] < 0 || seen_[j] == step_) return;
    seen_[j] = step_;
    by_offset_.push_back({offsets_[j], offsets_[j] + problem_->pieces[j].size, trouble_[j] * worth_[j], j});
  });
  work_ += kStepWork + kObstacleWork * by_offset_.size();
  by_top_ = by_offset_;
  std::sort(by_offset_.begin(), by_offset_.end(),
            [](const Obstacle& a, const Obstacle& b) { return a.offset < b.offset; });
  std::sort(by_top_.begin(), by_top_.end(), [](const Obstacle& a, const Obstacle& b) { return a.top < b.top; });
}

/// The offset at which the sum of the obstacles' worths is the least, drawn at random among equals; -1 if a fixed piece
/// is in the way at every offset. It is enough to try offsets at which the piece rests on an obstacle or on the ground,
/// or touches an obstacle or the capacity with its top.
/// @param free  whether there is no obstacle at all
std::int64_t EjectionSearch::cheapest(const PackingProblem::Piece& piece, std::int64_t capacity, bool& free) {
  double least = std::numeric_limits<double>::infinity();
  std::int64_t found = -1;
  int equal = 0;
  const auto scan = [&](const auto& next_offset) {
    std::size_t entered = 0, left = 0, fixed = 0;
    double worth = 0;
    while (const std::optional<std::int64_t> offset = next_offset()) {
      if (*offset < 0) continue;
      if (*offset + piece.size > capacity) return;
      for (; entered < by_offset_.size() && by_offset_[entered].offset < *offset + piece.size; ++entered) {
        worth += by_offset_[entered].worth;
        fixed += problem_->pieces[by_offset_[entered].piece].fixed >= 0 ? 1 : 0;
      }
      for (; left < by_top_.size() && by_top_[left].top <= *offset; ++left) {
        worth -= by_top_[left].worth;
        fixed -= problem_->pieces[by_top_[left].piece].fixed >= 0 ? 1 : 0;
      }
      if (fixed > 0) continue;
      // Rounding must not make a place with obstacles look free.
      worth = entered == left ? 0 : std::max(worth, std::numeric_limits<double>::min());
      if (worth > least) continue;
      if (worth < least) equal = 0;
      least = worth;
      if (random_.next() * ++equal < 1) found = *offset;
    }
  };
  std::size_t k = 0;
  scan([&]() -> std::optional<std::int64_t> {
    if (k > by_top_.size()) return {};
    const std::int64_t low = k == 0 ? 0 : by_top_[k - 1].top;
    ++k;
    return (low + piece.alignment - 1) / piece.alignment * piece.alignment;
  });
  k = 0;
  scan([&]() -> std::optional<std::int64_t> {
    if (k > by_offset_.size()) return {};
    const std::int64_t high = (k == by_offset_.size() ? capacity : by_offset_[k].offset) - piece.size;
    ++k;
    return high - (high % piece.alignment + piece.alignment) % piece.alignment;
  });
  free = least == 0;
  return found;
}

}  // namespace tidepool
