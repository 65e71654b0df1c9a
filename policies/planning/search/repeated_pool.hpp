// A pool that serves the planned places of a run whose bytes were counted.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "policies/planning/search/counted_pool.hpp"

namespace tidepool {

/// Gives a version the place that it has at this moment of the recorded run. Refuses a version that has none then, and
/// a place that is not free.
///
/// If the log has a cycle, the moments are those of the cycle, and the run begins as the cycle does: content that steps
/// hand on begins in the place that it has at the start of the cycle, or on the host.
class RepeatedPool final : public Pool {
 public:
  /// A stay of a version in one place. Moments: i n + k for op k in iteration i of n ops; k is n behind them.
  struct Stay {
    Bytes offset, size;
    std::size_t first = 0, last = 0;  ///< moments: it begins at the first, and ends at the last
  };
  struct Places {
    std::vector<std::vector<Stay>> stays;  ///< by version, in order
    std::vector<bool> refused_once;        ///< by version: its content begins on the host
    std::size_t ops = 0, iterations = 1;   ///< of a step; of the recorded run or its cycle
  };

  /// @param offsets  by life of the log
  /// @param draft    of the run; swap-outs before the first op say what begins on the host without a request
  static Places places_of(const PlaceLog& log, const std::vector<Bytes>& offsets, const Trace& trace,
                          const std::vector<Action>& draft);

  explicit RepeatedPool(std::shared_ptr<const Places> places) : places_{std::move(places)} {}

  void start(const Trace&, Bytes capacity, Device&) override;
  std::optional<Block> place(const Request& request) override;
  void release(const Block& block) override { holes_->release(block); }
  Bytes largest_hole() const override { return holes_->largest(); }

 private:
  std::size_t moment_of(OpId before);

  std::shared_ptr<const Places> places_;
  std::vector<bool> asked_;        // by version
  std::vector<std::size_t> next_;  // by version: its first stay that has not begun
  std::optional<HoleMap> holes_;
  std::size_t iteration_ = 0;  // of the recorded run or its cycle
  OpId before_;                // of the last request
};

}  // namespace tidepool
