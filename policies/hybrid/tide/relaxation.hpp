// The linear program of a planner: which share of the content of each idle interval is copied or dropped.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "policies/hybrid/tide/step_model.hpp"
#include "policies/hybrid/tide/time_groups.hpp"
#include "policies/hybrid/tide/treatment.hpp"

namespace tidepool {

/// The answer of the relaxation.
struct RelaxedPlan {
  Treatments rounded;  ///< the larger share, where copied and dropped content together are half or more
  std::vector<double>
      weight;  ///< by idle interval: from 0 (not in the program) to 1 (its decision costs next to nothing)
};

/// A linear program over time groups and classes of like idle intervals, with these variables:
///   w_j         time that group j waits for copies;  o_j, i_j  time of swap-outs and swap-ins in group j
///   Q_j, A_j    time of the swap-outs that are ready but not done, and of swap-ins done but not due, at the start of j
///   y_c, r_c    shares of class c that are copied and dropped; y_c + r_c <= 1
/// It minimises the sum of w_j and of the recomputations r_c. In each group, copies fit into its time, which its waits
/// and recomputations extend, at the rate that is left beside copies the other way (duplex). Memory:
///   load_j - sum over absent classes of (y_c + r_c) size_c + bytes leaving + bytes back early <= capacity + excess_j,
/// where bytes leaving are at least Q_j less what may leave during the interval. Excess bytes cost three times their
/// copies, since a program without any excess has no solution where plans are needed most. A buffer moves as a whole:
/// while a copy of mean size is under way, its bytes count as well (shadows).
///
/// The program is no bound: plans may beat it.
class Relaxation {
 public:
  /// @param model  outlives the relaxation
  /// @param most_groups  the most time groups
  Relaxation(const StepModel& model, std::size_t most_groups = 100)
      : model_{model}, groups_{model.circle, most_groups}, more_load_(groups_.size()) {}

  /// Later programs take the times of ops from a plan.
  void set_clock(const std::vector<Nanos>& start) { groups_.set_clock(start); }
  /// Later programs count these further bytes by slot.
  void set_more_load(const std::vector<Bytes>& more);

  /// @param waits  whether copies may also move while ops wait, as variables of their own
  /// @return       none if the program has no solution
  std::optional<RelaxedPlan> solve(Bytes capacity, bool waits) const;

 private:
  const StepModel& model_;
  TimeGroups groups_;
  std::vector<Bytes> more_load_;  // by group: bytes above its load
};

}  // namespace tidepool
