// The least time of reruns after an instant, as a function of the missing bytes. Reruns that make the inputs of other
// reruns count too.
#pragma once

#include <cstdint>
#include <vector>

#include "simulator/solvers/bounds/recompute_cut.hpp"
#include "simulator/solvers/bounds/recompute_model.hpp"
#include "simulator/solvers/bounds/window_costs.hpp"

namespace tidepool {

/// The program needs some versions after an instant. Each of them is resident at that instant, or it is copied in
/// later, or an op that runs again makes it. The same holds for the inputs of these ops. Let S be the bytes of all
/// content that is resident or copied in, and z = (bytes needed later) - S. For every price, the minimum cut of
/// RecomputeCut proves that the reruns take at least a + price * z. The curve C(z) is the largest of such lines. Lines
/// are found where they matter: each is the best one at the z that was the cheapest choice before.
class RerunCurve {
 public:
  RerunCurve(const RecomputeModel& model, std::int32_t instant);

  const RecomputeCut& cut() const { return cut_; }

  /// A lower bound of the time lost if `excess` bytes of the content needed later are not resident: the least of
  /// before(excess - z) + max(after(excess - z), C(z)) over z.
  LostTime least(double excess, const Before& before, const Ramp& after);

 private:
  struct Line {
    double start = 0, slope = 0;
  };
  bool add_line(double z);
  RerunCost cost(double upto) const;

  RecomputeCut cut_;
  double most_;  // the most bytes that reruns can bring back
  std::vector<Line> lines_;
  double price_ = 0;
};

}  // namespace tidepool
