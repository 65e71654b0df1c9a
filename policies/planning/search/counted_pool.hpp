// Counting bytes first, giving addresses later: how a policy plans what goes and where it lies, one after the other.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "simulator/plan.hpp"
#include "simulator/pool.hpp"
#include "simulator/pools/hole_map.hpp"

namespace tidepool {

/// What a run asked a pool for, in order.
struct PlaceLog {
  static constexpr std::uint32_t kNever = ~std::uint32_t{0};
  struct Life {
    Bytes size;                      ///< rounded
    std::uint32_t end = kNever;      ///< the first request that comes after it was given back
    bool after_temporaries = false;  ///< it fit only when what was brought back for others had gone
    OpId before = {};                ///< the op that the program ran next; none: after the last
  };
  std::vector<Life> lives;  ///< by request
  /// What was asked for, in order, and whether it was given; each given one is the next of `lives`.
  struct Answer {
    VersionId version;
    bool given = false;
  };
  std::vector<Answer> answers;
  std::uint32_t asked = 0;  ///< how often policies were asked to make room

  /// Where an iteration begins: so many lives and answers were before.
  struct Begin {
    std::size_t lives = 0, answers = 0;
  };
  std::vector<Begin> begins;  ///< by iteration, if they are noted
  /// Part of the run after which all is asked for again and again: what lies where it begins and where it ends is equal.
  struct Cycle {
    Begin first, last;
    /// By life: one that lies where the cycle begins and must lie where this one, of the same buffer, does, since this
    /// one lies where the cycle ends; else kNever.
    std::vector<std::uint32_t> twin;
  };
  std::optional<Cycle> cycle;
};

/// Refuses what exceeds a sum of rounded bytes, and knows no addresses. Writes down who lives when.
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

/// Gives the n-th request the n-th planned place.
class FollowedPool final : public Pool {
 public:
  struct Place {
    Bytes offset, size;
    bool after_temporaries = false;  ///< refuse it once
  };
  /// @param served  counts the requests that were served
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

/// Answers as a CountedPool has answered, version by version, with the planned places: a run that decides as the
/// recorded one did asks for the same again. Refuses what it knows nothing of, and what is not free.
class RepeatedPool final : public Pool {
 public:
  struct Answer {
    bool given = false;
    Bytes offset, size;
  };
  struct Version {
    std::vector<Answer> answers;       // in order
    std::optional<std::size_t> again;  // after the last one, from this one on
  };
  using Answers = std::vector<Version>;

  /// @param offsets  by life of the log; if that has a cycle, it is answered again and again
  static Answers answers_of(const PlaceLog& log, const std::vector<Bytes>& offsets, std::size_t versions) {
    Answers answers(versions);
    std::size_t life = 0;
    const std::size_t count = log.cycle ? log.cycle->last.answers : log.answers.size();
    for (std::size_t i = 0; i < count; ++i) {
      const PlaceLog::Answer& each = log.answers[i];
      Answer answer{each.given, {}, {}};
      if (each.given) answer.offset = offsets[life], answer.size = log.lives[life].size, ++life;
      Version& version = answers[each.version.index()];
      if (log.cycle && i >= log.cycle->first.answers && !version.again) version.again = version.answers.size();
      version.answers.push_back(answer);
    }
    return answers;
  }

  explicit RepeatedPool(std::shared_ptr<const Answers> answers) : answers_{std::move(answers)} {}

  void start(const Trace&, Bytes capacity, Device&) override {
    next_.assign(answers_->size(), 0);
    holes_.emplace(capacity);
  }
  std::optional<Block> place(const Request& request) override {
    std::size_t& next = next_[request.version.index()];
    const Version& version = (*answers_)[request.version.index()];
    if (next >= version.answers.size() && version.again) next = *version.again;
    if (next >= version.answers.size()) return {};
    const Answer& answer = version.answers[next];
    if (answer.given && !holes_->place_at(answer.offset, answer.size)) return {};
    ++next;
    if (!answer.given) return {};
    return Block{answer.offset, answer.size};
  }
  void release(const Block& block) override { holes_->release(block); }
  Bytes largest_hole() const override { return holes_->largest(); }

 private:
  std::shared_ptr<const Answers> answers_;
  std::vector<std::size_t> next_;  // by version
  std::optional<HoleMap> holes_;
};

}  // namespace tidepool
