// Policies that have decided everything before the run.
#pragma once

#include <optional>

#include "simulator/plan.hpp"

namespace tidepool {

/// What a Policy is besides if it may hand over a whole plan in the place of all decisions.
class WholePlanner {
 public:
  virtual ~WholePlanner() = default;

  /// A realised plan of the run; none: the policy decides as others do. The driver carries out its actions in order,
  /// and asks the pool for the places. After its last iteration its cycle is repeated. Asked once, after the draft, and
  /// only of a policy that is alone in its chain.
  virtual std::optional<Plan> whole_plan() = 0;
};

}  // namespace tidepool
