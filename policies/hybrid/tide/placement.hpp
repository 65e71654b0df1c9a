// Addresses for a plan whose run only counted bytes.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "policies/planning/gaps/gap_draft.hpp"
#include "policies/planning/search/repeated_pool.hpp"
#include "policies/planning/search/run_places.hpp"
#include "simulator/result.hpp"
#include "simulator/run_spec.hpp"
#include "traces/trace.hpp"

namespace tidepool {

/// A draft and the places of all requests of its run.
struct PlacedDraft {
  GapDraft draft;
  OnDemand on_demand = OnDemand::kCopy;
  std::shared_ptr<const RepeatedPool::Places> places;

  /// The policy that follows the draft and the places.
  std::unique_ptr<Policy> answer() const;
};

/// Runs drafts with a limit of the sum of bytes, and packs the lives of their buffers.
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
  /// @param limit           of the sum of bytes
  /// @param overhead_limit  the run ends when it exceeds this
  Counted count(const GapDraft& draft, Bytes limit, std::optional<double> overhead_limit);

  /// Whether a log of this many lives is searched for low places. Larger logs are only packed by one-pass orders.
  static bool searches(const PlaceLog& log);
  /// The effort of the search for low places.
  enum class Packing : std::uint8_t { kThorough, kHard };
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

 private:
  const Trace& trace_;
  const RunSpec& spec_;
  OnDemand on_demand_;
  Bytes granule_;
};

}  // namespace tidepool
