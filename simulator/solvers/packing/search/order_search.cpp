#include "simulator/solvers/packing/search/order_search.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <functional>
#include <tuple>
#include <utility>

namespace tidepool {
namespace {

/// By piece: the largest load of the sections in which it lives. O(n log n).
std::vector<std::int64_t> crowds(const PackingProblem& problem) {
  std::vector<std::vector<std::int64_t>> levels{problem.loads()};  // of 1, 2, 4, ... sections
  for (std::size_t half = 1; 2 * half <= levels.front().size(); half *= 2) {
    const std::vector<std::int64_t>& below = levels.back();
    std::vector<std::int64_t> level(below.size() - half);
    for (std::size_t s = 0; s < level.size(); ++s) level[s] = std::max(below[s], below[s + half]);
    levels.push_back(std::move(level));
  }
  std::vector<std::int64_t> crowds;
  crowds.reserve(problem.pieces.size());
  for (const PackingProblem::Piece& piece : problem.pieces) {
    std::int64_t most = 0;
    for (const SectionRange range : problem.lives(piece)) {
      const auto level = static_cast<std::size_t>(std::bit_width(range.last - range.first) - 1);
      const std::uint32_t second = range.last - (std::uint32_t{1} << level);
      most = std::max({most, levels[level][range.first], levels[level][second]});
    }
    crowds.push_back(most);
  }
  return crowds;
}

}  // namespace

OrderSearch::OrderSearch(const PackingProblem& problem)
    : problem_{&problem}, crowd_{crowds(problem)}, order_(problem.pieces.size()) {
  life_.reserve(problem.pieces.size());
  for (const PackingProblem::Piece& piece : problem.pieces) {
    std::int64_t sections = 0;
    for (const SectionRange range : problem.lives(piece)) sections += range.last - range.first;
    life_.push_back(sections);
  }
  for (const std::int64_t crowd : crowd_) load_ = std::max(load_, crowd);
}

/// The order of a start. Its key is a pair whose greatest comes first.
std::vector<double> OrderSearch::start_ranks(std::size_t start) const {
  enum class Key : std::uint8_t { kSize, kSizeLife, kLife, kArea, kRoot, kCrowdLife, kCrowdSize };
  struct Start {
    double share;  // pieces in sections with at least this share of the load come first
    Key crowded, others;
  };
  constexpr std::array<Start, kStarts / 2> kOrders{{{0, Key::kSize, Key::kSize},
                                                    {0, Key::kCrowdLife, Key::kCrowdLife},
                                                    {0.95, Key::kLife, Key::kSize},
                                                    {0, Key::kSizeLife, Key::kSizeLife},
                                                    {0, Key::kRoot, Key::kRoot},
                                                    {0, Key::kLife, Key::kLife},
                                                    {0, Key::kCrowdSize, Key::kCrowdSize},
                                                    {0.95, Key::kSize, Key::kSize},
                                                    {0, Key::kArea, Key::kArea},
                                                    {0.8, Key::kLife, Key::kSize}}};
  const Start chosen = kOrders[start / 2];
  const auto bound = static_cast<std::int64_t>(chosen.share * static_cast<double>(load_));
  std::vector<std::tuple<bool, double, double, std::uint32_t>> keys;  // the last one counts down the pieces
  keys.reserve(life_.size());
  for (std::uint32_t i = 0; i < life_.size(); ++i) {
    const auto size = static_cast<double>(problem_->pieces[i].size), life = static_cast<double>(life_[i]);
    const auto birth = static_cast<double>(problem_->lives(problem_->pieces[i]).front().first);
    const auto crowd = static_cast<double>(crowd_[i]);
    const bool crowded = crowd_[i] >= bound;
    const auto key = [&]() -> std::pair<double, double> {
      switch (crowded ? chosen.crowded : chosen.others) {
        case Key::kSize:
          return {size, -birth};
        case Key::kSizeLife:
          return {size, life};
        case Key::kLife:
          return {life, size};
        case Key::kArea:
          return {size * life, size};
        case Key::kRoot:
          return {size * size * life, size};
        case Key::kCrowdLife:
          return {crowd, life};
        case Key::kCrowdSize:
          break;
      }
      return {crowd, size};
    }();
    keys.emplace_back(crowded, key.first, key.second, ~i);
  }
  std::sort(keys.begin(), keys.end(), std::greater<>{});
  std::vector<double> ranks(keys.size());
  for (std::size_t k = 0; k < keys.size(); ++k)
    ranks[~std::get<3>(keys[k])] = static_cast<double>(k) / static_cast<double>(keys.size());
  return ranks;
}

/// Places the pieces and counts the height. @return  whether it was not interrupted
bool OrderSearch::pass(Chain& chain, const Interrupted& interrupted) {
  constexpr std::uint64_t kAsk = 256;  // pieces
  for (std::uint32_t i = 0; i < order_.size(); ++i) order_[i] = {chain.ranks[i], i};
  std::sort(order_.begin(), order_.end());
  Occupancy occupancy{problem_->sections};
  chain.offsets.assign(order_.size(), 0);
  chain.height = 0;
  const auto place = [&](std::uint32_t i, std::int64_t offset) {
    const PackingProblem::Piece& piece = problem_->pieces[i];
    chain.offsets[i] = offset;
    occupancy.take(problem_->lives(piece), offset, piece.size);
    chain.height = std::max(chain.height, offset + piece.size);
  };
  if (problem_->has_fixed)
    for (std::uint32_t i = 0; i < order_.size(); ++i)
      if (problem_->pieces[i].fixed >= 0) place(i, problem_->pieces[i].fixed);
  const std::uint64_t piece_work = OrderSearch::piece_work(order_.size());
  std::uint64_t placed = 0;
  for (const auto& [rank, i] : order_) {
    const PackingProblem::Piece& piece = problem_->pieces[i];
    if (piece.fixed >= 0) continue;
    if (++placed % kAsk == 0 && interrupted(placed * piece_work)) {
      work_ += placed * piece_work;
      return false;
    }
    place(i, occupancy.find(problem_->lives(piece), piece.size, piece.alignment, chain.fit));
  }
  work_ += placed * piece_work;
  return true;
}

/// Moves the pieces that ended above the target forward.
void OrderSearch::mend(Chain& chain, std::int64_t target) {
  constexpr double kLeast = 0.02, kBeforeFirst = 1e-3;
  for (std::uint32_t i = 0; i < chain.offsets.size(); ++i) {
    if (chain.offsets[i] + problem_->pieces[i].size <= target) continue;
    const double share = random_.next();
    chain.ranks[i] -= (kLeast + (1 - kLeast) * share * share) * (chain.ranks[i] + kBeforeFirst);
  }
}

std::optional<std::vector<std::int64_t>> OrderSearch::run(std::int64_t target, std::int64_t below,
                                                          const Interrupted& interrupted) {
  constexpr std::uint32_t kAcceptHigher = 8;  // one higher layout in so many
  const bool start = turn_ < kStarts;
  const std::size_t which = start ? 0 : turn_ % chains_.size();
  Chain next;
  if (start) {
    next.ranks = start_ranks(turn_);
    next.fit = turn_ % 2 == 0 ? Fit::kFirst : Fit::kBest;
  } else {
    next = chains_[which];
    mend(next, target);
  }
  ++turn_;
  if (!pass(next, interrupted)) return {};
  std::optional<std::vector<std::int64_t>> found;
  if (next.height < below) found = next.offsets;
  if (start) {
    const auto worse =
        std::find_if(chains_.begin(), chains_.end(), [&](const Chain& chain) { return chain.height > next.height; });
    chains_.insert(worse, std::move(next));
    if (chains_.size() > kChains) chains_.pop_back();
  } else if (next.height <= chains_[which].height || random_.below(kAcceptHigher) == 0) {
    chains_[which] = std::move(next);
  }
  return found;
}

}  // namespace tidepool
