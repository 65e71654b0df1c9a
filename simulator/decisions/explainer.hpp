// Policies that can say why they decide as they do.
#pragma once

#include "simulator/decisions/ranking.hpp"
#include "simulator/policy.hpp"

namespace tidepool {

/// What a Policy is besides if it explains itself. Asked only by runs that are explained, and changes no later answer.
class Explainer {
 public:
  virtual ~Explainer() = default;

  /// What the answer that make_room() has just given was chosen among, with what it chose first. Asked before the answer
  /// is carried out.
  virtual Ranking ranking(const View&, const Request&) { return {}; }

  /// Whether before_run() and before_place() carry out what was decided before the run.
  virtual bool follows_plan() const { return false; }
};

/// The ranking of a policy's latest answer; empty if it does not explain itself.
inline Ranking ranking_of(Policy& policy, const View& view, const Request& request) {
  auto* const explainer = dynamic_cast<Explainer*>(&policy);
  return explainer != nullptr ? explainer->ranking(view, request) : Ranking{};
}

/// Whether it says that it follows a plan.
inline bool follows_plan(const Policy& policy) {
  const auto* const explainer = dynamic_cast<const Explainer*>(&policy);
  return explainer != nullptr && explainer->follows_plan();
}

}  // namespace tidepool
