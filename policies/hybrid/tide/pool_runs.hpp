// Runs of drafts by the engine: with bytes counted, and in the pool of the run.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "policies/hybrid/tide/placement.hpp"
#include "policies/planning/gaps/gap_draft.hpp"
#include "simulator/result.hpp"
#include "simulator/run_spec.hpp"
#include "traces/trace.hpp"

namespace tidepool {

/// Confirms drafts, and keeps the fastest that also ends well in the pool of the run.
///   Pools that count bytes, and pools that choose places themselves: a draft runs in the pool.
///   Pools that are one arena (see granule_of()): a draft runs with bytes counted. The lives of its buffers are packed,
///   at first like those of the last draft that found places; if they fit, the draft runs with these places.
class PoolRuns {
 public:
  using Maker = std::function<std::unique_ptr<Policy>()>;
  struct Found {
    Result result;
    Maker make;
  };
  static constexpr Nanos kFailed{std::numeric_limits<std::int64_t>::max() / 4};

  /// @param trace, spec  of the run; both outlive this object
  /// @param recorded     if `trace` is another form of it (see with_later_frees), answers are whole plans of this one
  PoolRuns(const Trace& trace, const RunSpec& spec, OnDemand on_demand, const Trace* recorded = nullptr);

  /// The spec of the run, with bytes counted where places are planned.
  const RunSpec& counted() const { return counted_; }
  /// Whether the pool of the run only counts bytes.
  bool counts_bytes() const { return spec_.pool.name == "ideal"; }
  /// Whether places are planned.
  bool plans_places() const { return granule_.has_value(); }

  /// Runs a draft for this limit of counted bytes. @return  the time of the run; kFailed if it does not end well
  Nanos confirm(const GapDraft& draft, Bytes limit);
  /// Packs the best draft since begin_limit() with more effort, if it has no places yet and may become the best.
  /// @return  bytes by which its places exceed the capacity; 0 if they fit, or if nothing was packed
  Bytes place_best();
  /// From now on, a draft that would be the best, but for which a quick search finds no places, fails.
  void require_places() { requires_places_ = true; }
  /// The least bytes by which the places of a draft since begin_limit() that failed for them exceed the capacity; 0 if
  /// none failed.
  Bytes excess() const { return excess_; }
  /// Forgets the best draft for another limit; places and the best answer stay.
  void begin_limit() { best_counted_.reset(), excess_ = Bytes{}; }

  /// The best answer so far; none if no draft ended well.
  const std::optional<Found>& best() const { return best_; }
  /// The answers that were the best one earlier, the latest last.
  const std::vector<Found>& earlier() const { return earlier_; }
  std::int64_t runs() const { return runs_; }

 private:
  struct Counted {
    Result result;
    GapDraft draft;
    std::shared_ptr<PlaceLog> log;
    bool placed = false;
  };

  Nanos offer(const Result& result, Maker make);
  std::optional<double> overhead_limit(const Result* best) const;
  Nanos run_in_pool(const GapDraft& draft);
  bool find_places(Counted& counted);
  bool follow(Counted& counted, const FoundPlaces& places);
  bool may_be_best(const Result& result) const { return !best_ || better(result, best_->result); }

  const Trace& trace_;
  const Trace* recorded_;
  const RunSpec& spec_;
  OnDemand on_demand_;
  std::optional<Bytes> granule_;
  RunSpec counted_;
  std::optional<Placer> placer_;
  std::optional<Counted> best_counted_;   // for the current limit
  std::shared_ptr<PlaceLog> placed_log_;  // of the last draft that found places
  FoundPlaces places_;
  std::optional<Found> best_;
  std::vector<Found> earlier_;
  bool requires_places_ = false;
  Bytes excess_;
  std::int64_t runs_ = 0;
};

}  // namespace tidepool
