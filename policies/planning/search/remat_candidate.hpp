// One way to choose what is dropped, among those that tide-remat tries.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "policies/planning/eviction/next_use_victims.hpp"
#include "simulator/bounds/recompute_model.hpp"
#include "simulator/policy.hpp"

namespace tidepool {

/// A registered policy by name, or dropping by next use with what ought to be kept until some instants.
struct Candidate {
  /// What a minimum cut would keep at an instant if it had a share of the room that there is.
  struct Cut {
    std::int32_t instant = 0;
    double share = 1;
  };
  std::string policy = {};  ///< empty: by next use
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

  /// @param capacity  what the room at an instant is a part of
  std::unique_ptr<Policy> make(const Candidate& candidate, Bytes capacity);

 private:
  using Key = std::pair<std::int32_t, std::int64_t>;  // instant, room
  const std::vector<bool>& kept(const Candidate::Cut& cut, Bytes capacity);

  RecomputeModel model_;
  std::uint64_t seed_;
  std::map<Key, std::vector<bool>> kept_;
};

}  // namespace tidepool
