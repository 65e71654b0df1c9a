// The best answer that a planner has found so far.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "policies/planning/gaps/gap_draft.hpp"
#include "policies/planning/search/answering_planner.hpp"

namespace tidepool {

/// The best answer so far, with its run, and other possible answers.
struct BestAnswer {
  /// A maker of the plan's policy, and the RunSpec::overhead_limit with which it plans: with another one, the answer of
  /// another policy could change.
  struct Answer {
    AnsweringPlanner::Maker make;
    std::optional<double> overhead_limit;
  };

  Result result;  ///< of the fastest plan; `answer` may be another one once the most robust plan has been chosen
  Answer answer;
  std::vector<Answer> others = {};  ///< in no order

  /// Keeps the better of two answers as `answer`, and adds the other one to `others`.
  void offer(const Result& other, Answer other_answer) {
    const bool wins = better(other, result);
    if (wins) result = other, std::swap(answer, other_answer);
    others.push_back(std::move(other_answer));
  }
  /// Takes copies on demand as the answer if plans lack memory and these copies do not, though they may take too long.
  void offer_copies_on_demand(const Trace& trace, const RunSpec& spec) {
    if (result.outcome != Outcome::kOutOfMemory) return;
    const auto follow = [] { return follow_draft({}, OnDemand::kCopy); };
    Result copies = judge(trace, spec, follow());
    if (copies.outcome != Outcome::kOutOfMemory) result = std::move(copies), answer = {follow, spec.overhead_limit};
  }
  /// Whether a plan ended well and takes no longer than the step without limit.
  bool loses_nothing() const { return result.outcome == Outcome::kOk && result.totals.makespan <= result.baseline; }
};

}  // namespace tidepool
