#include "simulator/solvers/bounds/window_costs.hpp"

namespace tidepool {

RerunCost::Choice RerunCost::least(double excess, double swappable, const Before& before, const Ramp& after) const {
  Choice best{.lost = {.recompute = std::numeric_limits<double>::infinity()}};
  const auto consider = [&](double z, double time) {
    if (z < 0 || z > excess || excess - z > swappable) return;
    const double out = before(excess - z), in = after(excess - z);
    const LostTime lost = in >= time ? LostTime{.d2h = out, .h2d = in} : LostTime{.d2h = out, .recompute = time};
    if (lost.total() < best.lost.total()) best = {lost, z};
  };
  double z = 0, time = 0;
  consider(0, 0);
  for (const Piece& piece : pieces_) {
    const double per_byte = piece.time / piece.bytes;
    const auto within = [&](double corner) {
      if (corner > z && corner < z + piece.bytes) consider(corner, time + (corner - z) * per_byte);
    };
    within(excess);
    within(excess - swappable);
    for (const Ramp& ramp : {before.out, before.both}) within(excess - ramp.slack * ramp.rate);
    // The point at which the larger of the two changes.
    if (const double rates = 1 / before.out.rate - 1 / before.both.rate; rates > 0)
      within(excess - (before.out.slack - before.both.slack) / rates);
    within(excess - after.slack * after.rate);
    // after(E - z) = C(z), on this piece
    within((excess / after.rate - after.slack - time + z * per_byte) / (per_byte + 1 / after.rate));
    z += piece.bytes;
    time += piece.time;
    consider(z, time);
  }
  return best;
}

}  // namespace tidepool
