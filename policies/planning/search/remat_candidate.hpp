// A candidate of tide-remat: one way to choose drops.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "policies/planning/eviction/next_use_victims.hpp"
#include "simulator/policy.hpp"
#include "simulator/solvers/bounds/recompute_model.hpp"

namespace tidepool {

/// A way to choose drops: a registered policy, by its name; or dropping by next use, with sets of versions to keep at
/// some instants.
struct Candidate {
  /// The versions that a minimum cut keeps at an instant, if they may use this share of the free bytes.
  struct Cut {
    std::int32_t instant = 0;
    double share = 1;
  };
  std::string policy = {};  ///< empty: drops by next use
  NextUseFormula formula = {};
  std::vector<Cut> cuts = {};  ///< ascending by instant
  std::shared_ptr<const DropByNextUse::Weights> weights = {};
};

/// Makes policies of candidates for one trace, and keeps the cuts that it has found.
class CandidateMaker {
 public:
  CandidateMaker(const Trace& trace, const Assumptions& assume, std::uint64_t seed)
      : model_{trace, assume, RecomputeModel::busiest_stream(trace)}, seed_{seed} {}

  const RecomputeModel& model() const { return model_; }

  /// @param capacity  Cut::share is a share of its free bytes
  std::unique_ptr<Policy> make(const Candidate& candidate, Bytes capacity);

 private:
  using Key = std::pair<std::int32_t, std::int64_t>;  // instant, room
  const std::vector<bool>& kept(const Candidate::Cut& cut, Bytes capacity);

  RecomputeModel model_;
  std::uint64_t seed_;
  std::map<Key, std::vector<bool>> kept_;
};

}  // namespace tidepool
