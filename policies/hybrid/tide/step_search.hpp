// The search for the best plan of one step, in phases that only continue each other.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "policies/hybrid/tide/evaluator.hpp"
#include "policies/hybrid/tide/local_search.hpp"
#include "policies/hybrid/tide/pool_runs.hpp"
#include "policies/hybrid/tide/relaxation.hpp"
#include "policies/hybrid/tide/step_model.hpp"
#include "policies/planning/gaps/selection.hpp"

namespace tidepool {

/// Parts of the search that may be left out, to show what they pay.
struct Phases {
  bool relaxation = true;    ///< plans from linear programs
  bool prices = true;        ///< plans by prices of copies
  bool rounds = true;        ///< local search
  bool lower_limits = true;  ///< plans for less than the capacity, where pools need more than the bytes
};

/// Plans one step. start() rounds linear programs. Where places matter, it does so for lower limits of the counted
/// bytes as well, and later phases use the limit at which places were found, or at which the pool lost the least time.
/// Then add_priced() and the local search continue from the best plan. Each phase keeps the best plan in the pool of
/// the run, so no later phase makes the answer worse.
class StepSearch {
 public:
  /// @param trace, spec  outlive the search
  /// @param dead         content to drop after its last use
  /// @param recorded     see PoolRuns
  StepSearch(const Trace& trace, const RunSpec& spec, bool recomputes, Bytes least, std::vector<DeadContent> dead,
             std::uint64_t seed, const Phases& phases, const Trace* recorded = nullptr);

  void start();
  /// Plans by prices; kPricedEvaluations evaluations at most.
  void add_priced();
  static constexpr std::int64_t kPricedEvaluations = 39;
  /// A round of local search, see LocalSearch::round().
  void round(std::int64_t moves);

  const PoolRuns& runs() const { return runs_; }
  /// Whether the best plan takes no longer than the step without limit.
  bool loses_nothing() const;

 private:
  void solve_programs(int count);
  void repair(const Treatments& treatments);
  SlotLimits limits_beside(const Treatments& treatments, std::int64_t share_of_1024) const;
  void find_placed_limit();
  void find_pool_limit();
  void plan_for(Bytes limit, const Treatments& earlier);
  void set_limit(Bytes limit);
  void adapt_limit(bool improved);
  Nanos confirm(const Treatments& treatments);
  void recreate(Treatments& treatments, SearchRandom& random);

  PoolRuns runs_;
  StepModel model_;
  Phases phases_;
  Evaluator evaluator_;
  Relaxation relaxation_;
  Machine busy_;
  std::vector<double> prices_, weight_;
  LocalSearch search_;
};

}  // namespace tidepool
