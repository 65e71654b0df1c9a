// The least time of reruns after an instant, with all that they read, as a function of the bytes that are not there.
#pragma once

#include <cstdint>
#include <vector>

#include "simulator/bounds/recompute_cut.hpp"
#include "simulator/bounds/recompute_model.hpp"
#include "simulator/bounds/window_costs.hpp"

namespace tidepool {

/// Of the content that the program needs after an instant, some is resident then, or on the host and copied in later,
/// and the rest is made by ops that run again. What these ops read is resident, copied in, or made again too. Let S be
/// the bytes of all content that is resident or copied in, and z = (bytes needed later) - S. For every price, the
/// minimum cut of RecomputeCut proves that the reruns take at least a + price * z. The curve C(z) is the largest of
/// such lines. Lines are found where they matter: each is the best one at the z that was the cheapest choice before.
class RerunCurve {
 public:
  RerunCurve(const RecomputeModel& model, std::int32_t instant);

  const RecomputeCut& cut() const { return cut_; }

  /// A lower bound of the time lost if `excess` bytes of what is needed later are not resident: the least of
  /// before(excess - z) + max(after(excess - z), C(z)).
  LostTime least(double excess, const Before& before, const Ramp& after);

 private:
  struct Line {
    double start = 0, slope = 0;
  };
  bool add_line(double z);
  RerunCost cost(double upto) const;

  RecomputeCut cut_;
  double most_;  // more bytes cannot be brought back by reruns
  std::vector<Line> lines_;
  double price_ = 0;
};

}  // namespace tidepool
