// Pools for planning in two steps: the first run counts bytes and records lifetimes; a later run serves planned places.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "simulator/engine/pools/hole_map.hpp"
#include "simulator/plan.hpp"
#include "simulator/pool.hpp"

namespace tidepool {

/// The requests of a run to a pool, in order.
struct PlaceLog {
  static constexpr std::uint32_t kNever = ~std::uint32_t{0};
  struct Life {
    Bytes size;                      ///< rounded
    std::uint32_t end = kNever;      ///< the first served request after its place was freed: an index into `lives`
    bool after_temporaries = false;  ///< it fit only after temporary versions had been dropped
    OpId before = {};                ///< the op before which it was requested; none: after the last op
  };
  std::vector<Life> lives;  ///< by served request
  /// All requests in order, and whether each was served. The n-th served request has the n-th entry of `lives`.
  struct Answer {
    VersionId version;
    bool given = false;
  };
  std::vector<Answer> answers;
  std::uint32_t asked = 0;  ///< number of shortages that policies were asked to solve

  /// The start of an iteration: the number of earlier lives and answers.
  struct Begin {
    std::size_t lives = 0, answers = 0;
  };
  std::vector<Begin> begins;  ///< by iteration, if they are recorded
  /// The part of the run that repeats: the places at its start equal those at its end.
  struct Cycle {
    Begin first, last;
    /// By life in memory at the end of the cycle: the life of the same buffer at the start of the cycle, which must
    /// have the same place. kNever for all other lives, and if both are one life.
    std::vector<std::uint32_t> twin;
    std::vector<std::uint32_t> at_start;  ///< by buffer: the life in memory at the start of the cycle, or kNever
  };
  std::optional<Cycle> cycle;
  bool ends_before_cycle(std::size_t life) const { return cycle && lives[life].end <= cycle->first.lives; }
};

/// A pool that limits the sum of rounded bytes and has no addresses. Records all lifetimes.
class CountedPool final : public Pool {
 public:
  CountedPool(Bytes limit, Bytes granule, std::shared_ptr<PlaceLog> log)
      : limit_{limit}, granule_{granule}, log_{std::move(log)} {}

  void start(const Trace&, Bytes, Device&) override {
    free_ = limit_;
    *log_ = {};
    refused_.reset();
    after_temporaries_ = false;
  }
  std::optional<Block> place(const Request& request) override {
    if (refused_ && *refused_ == log_->asked) after_temporaries_ = true;
    refused_.reset();
    const Bytes size = request.size > limit_ ? request.size : std::max(round_up(request.size, granule_), granule_);
    log_->answers.push_back({request.version, size <= free_});
    if (size > free_) {
      refused_ = log_->asked;
      return {};
    }
    free_ -= size;
    log_->lives.push_back({size, PlaceLog::kNever, std::exchange(after_temporaries_, false), request.before});
    return Block{kNoAddress, size, static_cast<std::uint32_t>(log_->lives.size() - 1)};
  }
  void release(const Block& block) override {
    free_ += block.size;
    log_->lives[block.tag].end = static_cast<std::uint32_t>(log_->lives.size());
  }
  Bytes largest_hole() const override { return free_; }

 private:
  Bytes limit_, granule_, free_;
  std::shared_ptr<PlaceLog> log_;
  std::optional<std::uint32_t> refused_;  // PlaceLog::asked when the last request was refused
  bool after_temporaries_ = false;
};

/// A pool that serves the n-th request with the n-th planned place.
class FollowedPool final : public Pool {
 public:
  struct Place {
    Bytes offset, size;
    bool after_temporaries = false;  ///< the request is refused once, so that temporary versions go
  };
  /// @param served  counts the served requests
  FollowedPool(std::shared_ptr<const std::vector<Place>> places, std::shared_ptr<std::size_t> served)
      : places_{std::move(places)}, served_{std::move(served)} {}

  void start(const Trace&, Bytes capacity, Device&) override {
    *served_ = 0;
    holes_.emplace(capacity);
    refused_ = false;
  }
  std::optional<Block> place(const Request& request) override {
    if (*served_ >= places_->size()) return {};
    const Place& place = (*places_)[*served_];
    if (place.after_temporaries && !std::exchange(refused_, true)) return {};
    if (request.size > place.size || !holes_->place_at(place.offset, place.size)) return {};
    ++*served_;
    refused_ = false;
    return Block{place.offset, place.size};
  }
  void release(const Block& block) override { holes_->release(block); }
  Bytes largest_hole() const override { return holes_->largest(); }

 private:
  std::shared_ptr<const std::vector<Place>> places_;  // by request
  std::shared_ptr<std::size_t> served_;
  std::optional<HoleMap> holes_;
  bool refused_ = false;
};

}  // namespace tidepool
