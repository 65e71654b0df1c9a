#include "policies/swap/autoswap/combined_score.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlopt.hpp>

namespace tidepool {
namespace {

void standardise(std::vector<double>& values) {
  const auto n = static_cast<double>(std::max<std::size_t>(values.size(), 1));
  double sum = 0, squares = 0;
  for (const double value : values) sum += value;
  for (const double value : values) squares += (value - sum / n) * (value - sum / n);
  const double deviation = std::sqrt(squares / n);
  for (double& value : values) value = deviation > 0 ? (value - sum / n) / deviation : 0;
}

}  // namespace

CombinedScore::CombinedScore(const StepCircle& circle, const std::vector<Gap>& gaps, const Machine& machine,
                             const SlotLimits& limits) {
  constexpr std::array kScores{GapScore::kDoa, GapScore::kAoa, GapScore::kWdoa, GapScore::kSwdoa};
  for (std::size_t i = 0; i < kScores.size(); ++i) {
    standardised_[i] = gap_scores(circle, gaps, machine, kScores[i], limits);
    standardise(standardised_[i]);
  }
}

std::vector<double> CombinedScore::operator()(const ScoreWeights& weights) const {
  std::vector<double> sum(standardised_.front().size());
  for (std::size_t i = 0; i < weights.size(); ++i)
    for (std::size_t gap = 0; gap < sum.size(); ++gap) sum[gap] += weights[i] * standardised_[i][gap];
  return sum;
}

ScoreWeights tune_weights(const std::function<double(const ScoreWeights&)>& cost, int evaluations, double enough) {
  ScoreWeights best{};
  double least = std::numeric_limits<double>::infinity();
  const auto evaluate = [&](const ScoreWeights& weights) {
    const double found = cost(weights);
    if (found < least) least = found, best = weights;
    return found;
  };
  for (std::size_t i = 0; i < best.size() && !(least <= enough); ++i) {
    ScoreWeights alone{};
    alone[i] = 1;
    evaluate(alone);
  }
  if (least <= enough || evaluations <= 0) return best;

  nlopt::opt direct{nlopt::GN_DIRECT_L, static_cast<unsigned>(best.size())};
  direct.set_lower_bounds(-1);
  direct.set_upper_bounds(1);
  direct.set_maxeval(evaluations);
  direct.set_stopval(enough);
  std::function<double(const std::vector<double>&)> objective = [&](const std::vector<double>& x) {
    ScoreWeights weights;
    std::copy(x.begin(), x.end(), weights.begin());
    return evaluate(weights);
  };
  direct.set_min_objective(
      [](const std::vector<double>& x, std::vector<double>&, void* context) {
        return (*static_cast<std::function<double(const std::vector<double>&)>*>(context))(x);
      },
      &objective);
  std::vector<double> last(best.size());
  double cost_of_last = 0;
  direct.optimize(last, cost_of_last);
  return best;
}

}  // namespace tidepool
