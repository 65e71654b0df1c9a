// Score of a gap as a sum of several weighted scores.
#pragma once

#include <array>
#include <functional>
#include <vector>

#include "policies/planning/gaps/selection.hpp"

namespace tidepool {

/// Weights of DOA, AOA, WDOA and SWDOA (see GapScore), each from -1 to 1.
using ScoreWeights = std::array<double, 4>;

/// AutoSwap's combination of its scores (Zhang et al., arXiv 1903.06631, section 4.2): the weighted sum of all four,
/// each standardised to mean 0 and variance 1 over the gaps. SWDOA is its value before any gap is picked.
class CombinedScore {
 public:
  CombinedScore(const StepCircle& circle, const std::vector<Gap>& gaps, const Machine& machine,
                const SlotLimits& limits);

  /// Scores by gap; larger is better.
  std::vector<double> operator()(const ScoreWeights& weights) const;

 private:
  std::array<std::vector<double>, 4> standardised_;
};

/// The tried weights with the least `cost`; zeros if all costs are infinite. First each of the four scores alone is
/// tried, then at most `evaluations` points of DIRECT-L (Gablonsky and Kelley, Journal of Global Optimization 21, 2001,
/// in NLopt), in place of the paper's Bayesian optimisation. Deterministic. Ends as soon as a cost is at most `enough`.
ScoreWeights tune_weights(const std::function<double(const ScoreWeights&)>& cost, int evaluations, double enough);

}  // namespace tidepool
