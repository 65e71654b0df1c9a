// Policies that have decided everything before the run.
#pragma once

#include <optional>

#include "simulator/plan.hpp"

namespace tidepool {

/// The interface of a policy that may hand over a whole plan instead of deciding.
class WholePlanner {
 public:
  virtual ~WholePlanner() = default;

  /// A realised plan of the run; none: the policy decides like any other. The driver carries out its actions in order,
  /// and asks the pool for the places. After the plan's last iteration, its cycle is repeated. Asked once, after the
  /// draft, and only of a policy that is alone in its chain.
  virtual std::optional<Plan> whole_plan() = 0;
};

}  // namespace tidepool
