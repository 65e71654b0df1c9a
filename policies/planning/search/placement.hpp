// Addresses for a plan that was judged by counting bytes.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "policies/planning/gaps/trials.hpp"
#include "policies/planning/search/counted_pool.hpp"
#include "policies/planning/search/run_places.hpp"
#include "simulator/result.hpp"
#include "simulator/run_spec.hpp"
#include "traces/trace.hpp"

namespace tidepool {

/// A draft and the places of all that its run asks for.
struct PlacedDraft {
  GapDraft draft;
  OnDemand on_demand = OnDemand::kCopy;
  std::shared_ptr<const RepeatedPool::Answers> places;

  /// The policy that follows both.
  std::unique_ptr<Policy> answer() const;
};

/// Runs drafts by a sum of bytes and packs the lives of their places.
class Placer {
 public:
  /// @param trace, spec  of the run with places; both outlive it
  /// @param granule      places are multiples of it
  Placer(const Trace& trace, const RunSpec& spec, OnDemand on_demand, Bytes granule)
      : trace_{trace}, spec_{spec}, on_demand_{on_demand}, granule_{granule} {}

  struct Counted {
    Result result;
    std::shared_ptr<PlaceLog> log;
  };
  /// @param limit           of the sum
  /// @param overhead_limit  ends the run
  Counted count(const GapDraft& draft, Bytes limit, std::optional<double> overhead_limit);

  /// Whether so many lives are searched for low places; of more, each way of packing makes one pass.
  static bool searches(const PlaceLog& log);
  /// How much is done to find low places.
  enum class Packing : std::uint8_t { kQuick, kThorough, kHard };
  FoundPlaces pack(const PlaceLog& log, Packing packing) const;
  /// As of find_like_places().
  FoundPlaces pack_like(const PlaceLog& log, const PlaceLog& earlier, const FoundPlaces& places) const {
    return find_like_places(log, earlier, places.offsets, granule_);
  }

  struct Placed {
    PlacedDraft draft;
    Result result;
  };
  /// The run with places, whose height fits the capacity.
  Placed follow(const GapDraft& draft, const PlaceLog& log, const FoundPlaces& places);

  /// How many runs there were.
  std::int64_t judged() const { return judged_; }

 private:
  const Trace& trace_;
  const RunSpec& spec_;
  OnDemand on_demand_;
  Bytes granule_;
  std::int64_t judged_ = 0;
};

/// Of a draft, as found by all three.
struct Placement {
  Result counted;
  Bytes height = {};                     ///< addresses that its lives take, if the counted run ended well
  std::optional<Placer::Placed> placed;  ///< if the height fits the capacity
};

/// Counts up to `limit`, packs thoroughly, and harder where little is missing, and follows what fits.
Placement find_placement(Placer& placer, const RunSpec& spec, const GapDraft& draft, Bytes limit);

/// What a counted run is worth whose places take this height: what lies above the capacity is taken to cost twice the
/// time of copying it out and back.
Result with_excess(Result counted, Bytes height, const RunSpec& spec);

}  // namespace tidepool
