// The interface of policies that explain their decisions.
#pragma once

#include "simulator/engine/decisions/ranking.hpp"
#include "simulator/policy.hpp"

namespace tidepool {

/// A second base class of a Policy that explains its decisions. It is called only if the run is explained (simulate
/// --explain), and no call changes a later answer of the policy.
class Explainer {
 public:
  virtual ~Explainer() = default;

  /// The candidates of the latest answer of make_room(), the chosen ones first. Called before the answer is carried
  /// out.
  virtual Ranking ranking(const View&, const Request&) { return {}; }

  /// Whether before_run() and before_place() carry out a plan that was made before the run.
  virtual bool follows_plan() const { return false; }
};

/// The ranking of a policy's latest answer; empty if it does not explain itself.
inline Ranking ranking_of(Policy& policy, const View& view, const Request& request) {
  auto* const explainer = dynamic_cast<Explainer*>(&policy);
  return explainer != nullptr ? explainer->ranking(view, request) : Ranking{};
}

/// Whether the policy follows a plan; false if it does not explain itself.
inline bool follows_plan(const Policy& policy) {
  const auto* const explainer = dynamic_cast<const Explainer*>(&policy);
  return explainer != nullptr && explainer->follows_plan();
}

}  // namespace tidepool
