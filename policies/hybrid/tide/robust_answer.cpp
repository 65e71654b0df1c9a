#include "policies/hybrid/tide/robust_answer.hpp"

#include <limits>
#include <vector>

#include "simulator/solvers/robustness.hpp"

namespace tidepool {

BestAnswer::Answer most_robust(const BestAnswer& best, const BestAnswer& careful, const Trace& trace,
                               const RunSpec& spec, double robust, std::uint64_t seed, std::int64_t& judged) {
  std::vector<BestAnswer::Answer> answers{best.answer, careful.answer};
  answers.insert(answers.end(), best.others.begin(), best.others.end());
  answers.insert(answers.end(), careful.others.begin(), careful.others.end());
  const std::vector<Scenario> scenarios = scenarios_around(trace, spec, robust, seed);
  const BestAnswer::Answer* chosen = &answers.front();
  double least = std::numeric_limits<double>::infinity();
  for (const BestAnswer::Answer& answer : answers) {
    RunSpec setting = spec;
    setting.overhead_limit = answer.overhead_limit;
    const Result result = judge(trace, setting, answer.make(), true);
    ++judged;
    if (result.outcome != Outcome::kOk) continue;
    const std::vector<ScenarioCost> costs = costs_in(scenarios, result.realised);
    judged += static_cast<std::int64_t>(costs.size());
    const double worst = costs[worst_of(costs)].ratio;
    if (worst < least) least = worst, chosen = &answer;
  }
  return *chosen;
}

}  // namespace tidepool
