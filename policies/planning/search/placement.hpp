// Addresses for a plan whose run only counted bytes.
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

/// A draft and the places of all requests of its run.
struct PlacedDraft {
  GapDraft draft;
  OnDemand on_demand = OnDemand::kCopy;
  std::shared_ptr<const RepeatedPool::Answers> places;

  /// The policy that follows the draft and the places.
  std::unique_ptr<Policy> answer() const;
};

/// Runs drafts with a limit of the sum of bytes, and packs the lives of their buffers.
class Placer {
 public:
  /// @param trace, spec  of the run with places; both outlive it
  /// @param granule      places are multiples of it
  /// @param effort       multiplies the effort of each search for places
  Placer(const Trace& trace, const RunSpec& spec, OnDemand on_demand, Bytes granule, double effort = 1)
      : trace_{trace}, spec_{spec}, on_demand_{on_demand}, granule_{granule}, effort_{effort} {}

  struct Counted {
    Result result;
    std::shared_ptr<PlaceLog> log;
  };
  /// @param limit           of the sum of bytes
  /// @param overhead_limit  the run ends when it exceeds this
  Counted count(const GapDraft& draft, Bytes limit, std::optional<double> overhead_limit);

  /// Whether a log of this many lives is searched for low places. Larger logs are only packed by one-pass orders.
  static bool searches(const PlaceLog& log);
  /// The effort of the search for low places.
  enum class Packing : std::uint8_t { kQuick, kThorough, kHard };
  FoundPlaces pack(const PlaceLog& log, Packing packing) const;
  /// See find_like_places().
  FoundPlaces pack_like(const PlaceLog& log, const PlaceLog& earlier, const FoundPlaces& places) const {
    return find_like_places(log, earlier, places.offsets, granule_);
  }

  struct Placed {
    PlacedDraft draft;
    Result result;
  };
  /// Runs the draft with places, whose height must fit the capacity.
  Placed follow(const GapDraft& draft, const PlaceLog& log, const FoundPlaces& places);

  /// Number of runs so far.
  std::int64_t judged() const { return judged_; }

 private:
  const Trace& trace_;
  const RunSpec& spec_;
  OnDemand on_demand_;
  Bytes granule_;
  double effort_;
  std::int64_t judged_ = 0;
};

/// The places found for a draft.
struct Placement {
  Result counted;
  Bytes height = {};                     ///< of its places, if the counted run ended well
  std::optional<Placer::Placed> placed;  ///< if the height fits the capacity
};

/// Runs the draft with `limit` for the sum of bytes, and packs the lives thoroughly (with more effort if the places
/// exceed the capacity by little). Runs it with the places if they fit.
Placement find_placement(Placer& placer, const RunSpec& spec, const GapDraft& draft, Bytes limit);

/// The estimated time of a counted run whose places have this height: bytes above the capacity cost twice the time of
/// copying them out and back.
Result with_excess(Result counted, Bytes height, const RunSpec& spec);

}  // namespace tidepool
