// Places for the requests of a program that may deviate from a planned layout, for the simulated pool and the live one.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "simulator/engine/pools/hole_map.hpp"
#include "simulator/pool.hpp"
#include "simulator/solvers/packing/follower.hpp"
#include "simulator/solvers/packing/layout_file.hpp"

namespace tidepool {

/// Requests are recognised by their sizes alone, in order (class Follower). A request that is recognised gets its
/// planned place. A request that is not recognised, or whose place is in use, gets the lowest place in the fallback
/// region, [height, height + fallback); else the hole in the planned region that the plan needs last; else the lowest
/// place beyond both. A step whose requests all get their planned places needs `height`. A step that deviates needs at
/// most height + fallback, unless a request is counted as `beyond`.
///
/// A live job allocates the buffers that exist before the step in an order of its own. Until the job is found to be in
/// the step, a request of the size of such a buffer gets that buffer's place, if it is free and the step plans no other
/// buffer there.
class LayoutPlaces {
 public:
  /// Requests that got their planned place (`planned`) or another one (`fallback`), and those of `fallback` whose place
  /// ends above limit() (`beyond`).
  struct Counts {
    std::int64_t planned = 0, fallback = 0, beyond = 0;
    bool operator==(const Counts&) const = default;
  };

  /// @param capacity  no place goes beyond it
  /// @param live      whether the job allocates the buffers that exist before the step in another order than the layout
  LayoutPlaces(LayoutFile layout, Bytes fallback, Bytes capacity, bool live);
  LayoutPlaces(const LayoutPlaces&) = delete;
  LayoutPlaces& operator=(const LayoutPlaces&) = delete;

  /// A place for a request of `size`, rounded up to the layout's alignment; none if no hole is large enough.
  std::optional<Block> place(Bytes size);
  void release(const Block& block) { holes_.release(block); }

  Bytes largest_hole() const { return holes_.largest(); }
  const Counts& counts() const { return counts_; }
  std::int64_t resynchronised() const { return follower_.resynchronised(); }
  /// Where the fallback region ends.
  Bytes limit() const { return round_up(layout_.height, layout_.alignment) + fallback_; }

 private:
  bool outlives_step(const PlannedRequest& existing) const;
  std::optional<Block> place_existing(Bytes size, Bytes rounded);
  std::optional<Bytes> place_elsewhere(Bytes size);
  std::optional<Bytes> least_missed(Bytes height, Bytes size) const;

  LayoutFile layout_;
  Bytes fallback_, capacity_;
  HoleMap holes_;
  Follower follower_;
  std::multimap<Bytes, Bytes> existing_;  ///< planned offsets of buffers that exist throughout the step, by size
  bool in_step_;                          ///< the buffers that exist before the step have been allocated
  std::size_t last_ = 0;                  ///< planned request that was recognised last
  std::size_t in_order_ = 0;              ///< requests in a row that followed each other as planned
  Counts counts_;
};

}  // namespace tidepool
