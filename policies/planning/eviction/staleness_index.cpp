#include "policies/planning/eviction/staleness_index.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <tuple>
#include <utility>

#include "policies/planning/eviction/exact_division.hpp"

namespace tidepool {

void StalenessIndex::reset(std::size_t slots) {
  leaves_ = std::bit_ceil(slots < 1 ? std::size_t{1} : slots);
  now_ = 0;
  lines_.assign(leaves_, Line{});
  nodes_.assign(2 * leaves_, Node{});
  negatives_.clear();
  negative_at_.assign(leaves_, kNone);
}

void StalenessIndex::set(std::uint32_t slot, Nanos cost, Bytes size, Nanos last_access, std::uint32_t order) {
  const bool negative = cost < Nanos{} && size > Bytes{};
  if (negative || negative_at_[slot] != kNone) clear(slot);
  Line& line = lines_[slot];
  line = {0, last_access.count(), cost.count(), size.count(), order};
  if (negative) {
    negative_at_[slot] = static_cast<std::uint32_t>(negatives_.size());
    negatives_.push_back(slot);
    return;
  }
  if (size > Bytes{})
    line.slope = cost == Nanos{} ? std::numeric_limits<double>::infinity()
                                 : static_cast<double>(size.count()) / static_cast<double>(cost.count());
  nodes_[leaves_ + slot].winner = slot;
  climb(leaves_ + slot);
}

void StalenessIndex::clear(std::uint32_t slot) {
  if (const std::uint32_t at = negative_at_[slot]; at != kNone) {
    negatives_[at] = negatives_.back();
    negative_at_[negatives_[at]] = at;
    negatives_.pop_back();
    negative_at_[slot] = kNone;
  }
  if (nodes_[leaves_ + slot].winner == kNone) return;
  nodes_[leaves_ + slot].winner = kNone;
  climb(leaves_ + slot);
}

/// The node of two candidates: the one with the higher line now, and the time up to which it is sure to win.
StalenessIndex::Node StalenessIndex::play(std::uint32_t left, std::uint32_t right) {
  if (left == kNone) return {right, kForever};
  if (right == kNone) return {left, kForever};
  ++evaluations_;
  const Line &a = lines_[left], &b = lines_[right];
  const double height_a = height(a), height_b = height(b);
  if (height_a == height_b) {
    if (height_a == 0) {  // both lines are still at 0
      const std::int64_t until = std::min(a.slope > 0 ? a.since : kForever, b.slope > 0 ? b.since : kForever);
      return {a.order > b.order ? left : right, until};
    }
    if (std::isinf(height_a)) return {a.order < b.order ? left : right, kForever};
    return {a.slope >= b.slope ? left : right, kForever};
  }
  const bool left_wins = height_a > height_b;
  const Line &high = left_wins ? a : b, &low = left_wins ? b : a;
  const std::uint32_t winner = left_wins ? left : right;
  if (low.slope <= high.slope && !std::isinf(low.slope)) return {winner, kForever};
  if (std::isinf(low.slope)) return {winner, low.since};  // the lower line is still at 0, but wins as soon as it rises
  const double gap = (left_wins ? height_a : height_b) - low.slope * static_cast<double>(now_ - low.since);
  const double time = gap / (low.slope - high.slope);
  constexpr double kFar = 4e18;
  return {winner, time < kFar && now_ < kForever / 2 ? now_ + static_cast<std::int64_t>(time) : kForever};
}

void StalenessIndex::climb(std::size_t leaf) {
  const auto slot = static_cast<std::uint32_t>(leaf - leaves_);
  std::size_t at = leaf / 2;
  for (; at > 0; at /= 2) {
    Node& node = nodes_[at];
    const Node &left = nodes_[2 * at], &right = nodes_[2 * at + 1];
    Node next = play(left.winner, right.winner);
    next.until = std::min({next.until, left.until, right.until});
    const bool same = next.winner == node.winner && next.winner != slot;
    const bool sooner = next.until < node.until;
    node = next;
    if (!same) continue;
    if (!sooner) return;
    // Higher up, the same candidates meet as before; only the time up to which a winner is certain may become earlier.
    for (at /= 2; at > 0 && nodes_[at].until > next.until; at /= 2) nodes_[at].until = next.until;
    return;
  }
}

void StalenessIndex::repair(std::size_t at) {
  if (nodes_[at].until >= now_) return;
  repair(2 * at);
  repair(2 * at + 1);
  const Node &left = nodes_[2 * at], &right = nodes_[2 * at + 1];
  Node next = play(left.winner, right.winner);
  next.until = std::min({next.until, left.until, right.until});
  nodes_[at] = next;
}

double StalenessIndex::quotient_of(std::uint32_t slot) const {
  const Line& line = lines_[slot];
  const std::int64_t age = now_ - line.since;
  if (age <= 0 || line.size == 0) return std::numeric_limits<double>::infinity();
  return quotient(line.cost, static_cast<Int128>(line.size) * age);
}

void StalenessIndex::visit_tied(std::size_t at, double threshold) {
  const std::uint32_t winner = nodes_[at].winner;
  if (winner == kNone || height(lines_[winner]) < threshold) return;
  if (at >= leaves_) return tied_.push_back(winner);
  visit_tied(2 * at, threshold);
  visit_tied(2 * at + 1, threshold);
}

std::uint32_t StalenessIndex::best_of_tied(std::uint32_t winner) {
  const double highest = height(lines_[winner]);
  if (highest == 0 || std::isinf(highest)) return winner;  // play() has decided by `order`
  tied_.clear();
  visit_tied(1, highest * (1 - kTied));
  if (tied_.size() == 1) return winner;
  std::uint32_t best = kNone;
  double least = std::numeric_limits<double>::infinity();
  for (const std::uint32_t slot : tied_) {
    const double cost = quotient_of(slot);
    if (cost < least || best == kNone || (cost == least && lines_[slot].order > lines_[best].order))
      best = slot, least = cost;
  }
  return best;
}

std::uint32_t StalenessIndex::with_negatives(std::uint32_t best) const {
  const bool zero = best != kNone && std::isinf(height(lines_[best]));
  std::uint32_t least = kNone;
  double least_cost = 0;
  for (const std::uint32_t slot : negatives_) {
    const double cost = quotient_of(slot);
    if (cost > 0 || (zero && lines_[slot].order > lines_[best].order)) continue;
    if (cost < least_cost || (cost == least_cost && lines_[slot].order > lines_[least].order))
      least = slot, least_cost = cost;
  }
  if (least != kNone) return least;
  if (best == kNone || height(lines_[best]) == 0)
    for (const std::uint32_t slot : negatives_)
      if (best == kNone || lines_[slot].order > lines_[best].order) best = slot;
  return best;
}

Ranking StalenessIndex::ranking(Nanos now, const std::function<bool(std::uint32_t)>& known) {
  using Key = std::tuple<bool, double, std::uint32_t>;  // whether it is not the winner, quotient, slot
  const std::uint32_t winner = least(now);
  std::vector<std::pair<Key, RankedVersions>> all;
  for (std::uint32_t slot = 0; slot < leaves_; ++slot) {
    if (nodes_[leaves_ + slot].winner == kNone && negative_at_[slot] == kNone) continue;
    const double quotient = quotient_of(slot);
    all.emplace_back(Key{slot != winner, quotient, slot},
                     RankedVersions{.versions = {VersionId{slot}}, .score = quotient, .at_least = !known(slot)});
  }
  return rank("cost / (size * time since the last use), 1/B", std::move(all), std::less<Key>{});
}

std::uint32_t StalenessIndex::least(Nanos now) {
  now_ = std::max(now_, now.count());
  repair(1);
  std::uint32_t best = nodes_[1].winner;
  if (best != kNone) best = best_of_tied(best);
  return negatives_.empty() ? best : with_negatives(best);
}

}  // namespace tidepool
