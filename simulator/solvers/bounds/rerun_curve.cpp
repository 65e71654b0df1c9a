#include "simulator/solvers/bounds/rerun_curve.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace tidepool {

RerunCurve::RerunCurve(const RecomputeModel& model, std::int32_t instant)
    : cut_{model, instant}, most_{static_cast<double>(cut_.needed_bytes() - cut_.least_bytes())} {}

/// Adds the best line at z. @return  whether it is new
bool RerunCurve::add_line(double z) {
  const auto room = cut_.needed_bytes() - static_cast<std::int64_t>(z);
  const RecomputeCut::Answer answer = cut_.bound(room, price_);
  if (!answer.feasible || answer.price <= 0) return false;
  price_ = answer.price;
  // The bound was rounded up to whole ns.
  const Line line{static_cast<double>(answer.bound - 1) - answer.price * std::floor(z), answer.price};
  const bool known = std::any_of(lines_.begin(), lines_.end(), [&](const Line& other) {
    return other.slope == line.slope && other.start >= line.start;
  });
  if (!known) lines_.push_back(line);
  return !known;
}

/// The curve for z up to `upto`, as pieces: the largest of 0 and all lines.
RerunCost RerunCurve::cost(double upto) const {
  std::vector<RerunCost::Piece> pieces;
  Line now;
  double z = 0;
  while (z < upto) {
    double until = upto;
    const Line* next = nullptr;
    for (const Line& line : lines_) {
      if (line.slope <= now.slope) continue;
      const double meets = std::max(z, (now.start - line.start) / (line.slope - now.slope));
      if (meets < until || (next != nullptr && meets == until && line.slope > next->slope)) until = meets, next = &line;
    }
    if (until > z) pieces.push_back({now.slope * (until - z), until - z});
    z = until;
    if (next != nullptr) now = *next;
  }
  return RerunCost{std::move(pieces)};
}

LostTime RerunCurve::least(double excess, const Before& before, const Ramp& after) {
  constexpr int kMostRounds = 8;
  constexpr double kAny = std::numeric_limits<double>::infinity();
  const double most = std::min(excess, most_);
  const auto cheapest = [&] { return cost(most).least(excess, kAny, before, after); };
  RerunCost::Choice choice = lines_.empty() ? RerunCost::Choice{{}, most} : cheapest();
  for (int round = 0; round < kMostRounds && add_line(choice.again); ++round) {
    const double known = choice.lost.total();
    choice = cheapest();
    if (round > 0 && choice.lost.total() <= known * (1 + 1e-6)) break;
  }
  return choice.lost;
}

}  // namespace tidepool
