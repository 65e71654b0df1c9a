// Runs of other policies in the run of a planner, so that the planner is never worse than any of them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "simulator/policy.hpp"
#include "simulator/result.hpp"
#include "simulator/run_spec.hpp"
#include "simulator/solvers/bounds/bound.hpp"
#include "traces/trace.hpp"

namespace tidepool {

/// Runs registered policies in place of a run's own policy, and keeps the best: policies that do only allowed actions,
/// with default options. A kind of policies is not run if a certified bound shows that none of it can win. A run that
/// becomes too slow to be the best is stopped, see limit_of().
class Rivals {
 public:
  /// @param self  the calling policy, which is not run
  Rivals(const Trace& trace, const RunSpec& spec, std::string self, bool may_swap, bool may_recompute)
      : trace_{trace}, spec_{spec}, self_{std::move(self)}, may_swap_{may_swap}, may_recompute_{may_recompute} {}

  struct Winner {
    std::function<std::unique_ptr<Policy>()> make;  ///< makes the policy again, or its answer
    std::optional<double> overhead_limit;           ///< of the run that won; under another limit its plan could change
  };
  /// The policy that beats `best` and all others, if there is one; `best` becomes its result.
  std::optional<Winner> beat(Result& best);
  /// Number of policies run so far.
  std::int64_t judged() const { return judged_; }

 private:
  std::optional<Bound> bound(bool swap, bool recompute) const;
  bool may_win(bool swap, bool recompute, const Result& best) const;

  const Trace& trace_;
  const RunSpec& spec_;
  std::string self_;
  bool may_swap_, may_recompute_;
  std::int64_t judged_ = 0;
};

}  // namespace tidepool
