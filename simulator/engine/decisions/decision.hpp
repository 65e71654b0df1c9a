// Decisions of a run: the request, the policy that answered, the candidates, the choice and its effect.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "simulator/engine/decisions/ranking.hpp"
#include "simulator/plan.hpp"
#include "simulator/pool.hpp"

namespace tidepool {

enum class Occasion : std::uint8_t {
  kRequest,    ///< a request did not fit
  kExpected,   ///< a request was about to be made
  kBeforeRun,  ///< an op was about to run
  kPlan,       ///< the action is in a plan that was made before the run
  kRules,      ///< the engine itself drops a version; it is recomputed or swapped in again before its next use
};

/// One answer of a policy and its effect on the run, or an eviction by the engine's own rules.
struct Decision {
  int iteration = 0;
  OpId before;  ///< the op that the program runs next; none: the last op has run
  Nanos time;   ///< on the run's clock
  Occasion occasion = Occasion::kPlan;
  std::size_t policy = 0;          ///< index into deciding_policies(); 0 if kRules
  std::optional<Request> request;  ///< for kRequest and kExpected; for kPlan if the plan acts before a request
  Ranking ranking;                 ///< for kRequest
  std::vector<Action> chosen;      ///< actions that were carried out, in this order
  std::vector<Action> in_vain;     ///< actions without effect: already done or under way, or no memory for them
  Bytes freed;                     ///< bytes of places that became free at once
  Bytes leaving;                   ///< bytes of places that become free when their swap-outs end
};

/// A function that is called for every decision of a run, in order, after it has been carried out.
using OnDecision = std::function<void(const Decision&)>;

}  // namespace tidepool
