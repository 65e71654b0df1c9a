// Score of a gap as a sum of several weighted scores.
#pragma once

#include <array>
#include <functional>
#include <vector>

#include "policies/planning/gaps/selection.hpp"

namespace tidepool {

/// Of DOA, AOA, WDOA and SWDOA, each from -1 to 1.
using ScoreWeights = std::array<double, 4>;

/// AutoSwap's combination of its scores (Zhang et al., arXiv 1903.06631, section 4.2): the weighted sum of all four,
/// each standardised to mean 0 and variance 1 over the gaps. SWDOA is its value before any gap is picked.
class CombinedScore {
 public:
  CombinedScore(const StepCircle& circle, const std::vector<Gap>& gaps, const Machine& machine,
                const SlotLimits& limits);

  /// By gap; larger is better.
  std::vector<double> operator()(const ScoreWeights& weights) const;

 private:
  std::array<std::vector<double>, 4> standardised_;
};

/// The tried weights with the least `cost`. Tried are each of the four scores alone and then `evaluations` points of
/// DIRECT-L (Gablonsky and Kelley, Journal of Global Optimization 21, 2001, in NLopt), which stands in for the paper's
/// Bayesian optimisation. Deterministic. Ends early where the cost is `enough` or less.
ScoreWeights tune_weights(const std::function<double(const ScoreWeights&)>& cost, int evaluations, double enough);

}  // namespace tidepool
