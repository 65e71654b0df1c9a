// Other policies in the run that a planner plans for: so that it is never worse than any of them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "simulator/bounds/bound.hpp"
#include "simulator/policy.hpp"
#include "simulator/result.hpp"
#include "simulator/run_spec.hpp"
#include "traces/trace.hpp"

namespace tidepool {

/// Runs registered policies that do nothing but what is allowed, with their defaults but for exact_option(), in the
/// setting of a run, and keeps the best. A kind of policy that a quick certified bound says cannot win is not run, and a
/// run that becomes slower than the best is given up.
class Rivals {
 public:
  /// @param self  the policy that asks: it is not run
  Rivals(const Trace& trace, const RunSpec& spec, std::string self, bool may_swap, bool may_recompute)
      : trace_{trace}, spec_{spec}, self_{std::move(self)}, may_swap_{may_swap}, may_recompute_{may_recompute} {}

  struct Winner {
    std::function<std::unique_ptr<Policy>()> make;  ///< makes it anew, or what it has answered with
    std::optional<double> overhead_limit;  ///< of the run that it won: it may plan something else under another
  };
  /// The policy that beats `best` and all others; none: none does. `best` becomes its result.
  std::optional<Winner> beat(Result& best);
  /// How many were run so far.
  std::int64_t judged() const { return judged_; }
  /// Whether any policy might end well: none can where a quick certified bound says so.
  bool plan_exists() const;

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
