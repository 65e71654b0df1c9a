// Decisions of a run: who was asked for what, what it chose among, and what came of it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "simulator/decisions/ranking.hpp"
#include "simulator/plan.hpp"
#include "simulator/pool.hpp"

namespace tidepool {

enum class Occasion : std::uint8_t {
  kRequest,    ///< a request did not fit
  kExpected,   ///< a request was about to be made
  kBeforeRun,  ///< an op was about to run
  kPlan,       ///< a plan that was made before the run
  kRules,      ///< no policy's: the engine drops what is made again or brought in again before its next use
};

/// One answer of a policy, and what the run made of it; or an eviction by the engine's own rules.
struct Decision {
  int iteration = 0;
  OpId before;  ///< the op that the program runs next; none: after the last
  Nanos time;   ///< on the run's clock
  Occasion occasion = Occasion::kPlan;
  std::size_t policy = 0;          ///< position in the chain, `none` not counted; 0 of kRules
  std::optional<Request> request;  ///< what for, of kRequest and kExpected
  Ranking ranking;                 ///< of kRequest
  std::vector<Action> chosen;      ///< carried out, in this order
  std::vector<Action> in_vain;     ///< of no effect: gone or on its way already, or no room for it
  Bytes freed;                     ///< of places that ended at once
  Bytes leaving;                   ///< of places that end when their copies to the host do
};

/// Called for every decision of a run, in order, when it has been carried out.
using OnDecision = std::function<void(const Decision&)>;

}  // namespace tidepool
