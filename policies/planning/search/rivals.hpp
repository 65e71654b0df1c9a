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
/// with default options except exact_option(). Policies that only swap are not run if a quick certified bound shows
/// that no such policy can win; the same holds for those that only recompute. A run that becomes too slow to be the
/// best is stopped, see limit_of().
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
  /// Whether any policy might end well; false if a quick certified bound excludes it.
  bool plan_exists();
  /// The time that no policy can beat, by a quick certified bound, over the sum of the times of all ops (with one
  /// stream, this is the time of the step without limit); at least 1, which also stands for no bound.
  double least_slower();

 private:
  std::optional<Bound> bound(bool swap, bool recompute) const;
  const std::optional<Bound>& least();
  bool may_win(bool swap, bool recompute, const Result& best) const;

  const Trace& trace_;
  const RunSpec& spec_;
  std::string self_;
  bool may_swap_, may_recompute_;
  std::optional<std::optional<Bound>> least_;  // the result of least(); none before the first call
  std::int64_t judged_ = 0;
};

}  // namespace tidepool
