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

/// Repeats the answers of a CountedPool, version by version, with planned places. A run that decides as the recorded
/// run did makes the same requests. Refuses unknown requests, and places that are not free.
///
/// If the log has a cycle, the run begins as the cycle does: content that steps hand on begins in the place that it has
/// at the start of the cycle, or on the host. Until copies take the times that they have in the cycle, a place may be
/// free too early, so no place is given before the op at which the cycle gives it.
class RepeatedPool final : public Pool {
 public:
  struct Answer {
    bool given = false;
    Bytes offset, size;
    OpId from = OpId{0};  // the first op before which it is given; none: after the last op
  };
  struct Version {
    std::vector<Answer> answers;       // in order
    std::optional<std::size_t> again;  // after the last answer, answers repeat from this one
  };
  using Answers = std::vector<Version>;

  /// @param offsets  by life of the log; if the log has a cycle, its answers repeat
  /// @param draft    of the run; swap-outs before the first op say what begins on the host, without a request
  static Answers answers_of(const PlaceLog& log, const std::vector<Bytes>& offsets, const Trace& trace,
                            const std::vector<Action>& draft) {
    Answers answers(trace.versions().size());
    const PlaceLog::Begin first = log.cycle ? log.cycle->first : PlaceLog::Begin{};
    std::size_t life = first.lives;
    const std::size_t count = log.cycle ? log.cycle->last.answers : log.answers.size();
    for (std::size_t i = first.answers; i < count; ++i) {
      const PlaceLog::Answer& each = log.answers[i];
      Answer answer;
      if (each.given) answer = {true, offsets[life], log.lives[life].size, log.lives[life].before}, ++life;
      Version& version = answers[each.version.index()];
      if (log.cycle) version.again = 0;
      version.answers.push_back(answer);
    }
    if (log.cycle) add_start(log, offsets, trace, draft, answers);
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
    if (answer.given && (request.before < answer.from || !holes_->place_at(answer.offset, answer.size))) return {};
    ++next;
    if (!answer.given) return {};
    return Block{answer.offset, answer.size};
  }
  void release(const Block& block) override { holes_->release(block); }
  Bytes largest_hole() const override { return holes_->largest(); }

 private:
  /// Adds the answers about content that steps hand on, when the first of them begins. Content that the cycle does not
  /// ask for keeps its place: if it has to leave and return, the answer is the same.
  static void add_start(const PlaceLog& log, const std::vector<Bytes>& offsets, const Trace& trace,
                        const std::vector<Action>& draft, Answers& answers) {
    std::vector<bool> begins_on_host(answers.size());
    for (const Action& action : draft) {
      if (action.before.valid() && action.before > OpId{0}) break;
      if (action.verb == Verb::kSwapOut) begins_on_host[action.subject] = true;
    }
    for (std::size_t b = 0; b < trace.buffers().size(); ++b) {
      const Buffer& buffer = trace.buffers()[b];
      if (!buffer.born_before || !buffer.outlives) continue;
      const VersionId v = trace.first_version(BufferId{b});
      const std::uint32_t life = log.cycle->at_start[b];
      if (life == PlaceLog::kNever && begins_on_host[v.index()]) continue;
      Version& version = answers[v.index()];
      Answer answer;
      if (life != PlaceLog::kNever) answer = {true, offsets[life], log.lives[life].size};
      version.again = version.answers.empty() ? 0 : 1;
      version.answers.insert(version.answers.begin(), answer);
    }
  }

  std::shared_ptr<const Answers> answers_;
  std::vector<std::size_t> next_;  // by version
  std::optional<HoleMap> holes_;
};

}  // namespace tidepool
