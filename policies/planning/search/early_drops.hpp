// The drops of a run, each moved to the time directly after the last use of its version.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "policies/planning/search/counted_pool.hpp"
#include "simulator/engine/decisions/ranking.hpp"
#include "simulator/plan.hpp"
#include "simulator/policy.hpp"

namespace tidepool {

/// A version that is dropped before a request for a place.
struct EarlyDrop {
  std::uint32_t request = 0;
  VersionId version;
};

/// The drops of a realised plan, each moved from the shortage to the first request after the version's last use. No op
/// uses the version in between, so all other actions stay the same, and memory is free for longer. Lives in the log of
/// the same run are shortened to match. In the order of requests.
std::vector<EarlyDrop> drop_early(const Trace& trace, const Plan& plan, PlaceLog& log);

/// Executes these drops at their requests, on a pool that counts its served requests.
class ScriptedDrops final : public Policy, public Explainer {
 public:
  ScriptedDrops(std::shared_ptr<const std::vector<EarlyDrop>> drops, std::shared_ptr<const std::size_t> served)
      : drops_{std::move(drops)}, served_{std::move(served)} {}

  bool anticipates() const override { return true; }
  bool follows_plan() const override { return true; }
  void before_place(const View& view, const Request&, std::vector<Action>& out) override {
    for (; next_ < drops_->size() && (*drops_)[next_].request <= *served_; ++next_)
      if (const VersionId v = (*drops_)[next_].version; view.droppable(v))
        out.push_back({.verb = Verb::kDrop, .subject = v.value()});
  }

 private:
  std::shared_ptr<const std::vector<EarlyDrop>> drops_;
  std::shared_ptr<const std::size_t> served_;
  std::size_t next_ = 0;
};

}  // namespace tidepool
