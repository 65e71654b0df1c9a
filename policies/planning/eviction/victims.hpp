// Policies that evict the version with the least key, one at a time.
#pragma once

#include <algorithm>
#include <cstdint>

#include "policies/planning/eviction/tournament.hpp"
#include "simulator/engine/decisions/ranking.hpp"
#include "simulator/policy.hpp"

namespace tidepool {

/// Makes room by evicting the evictable version whose key comes first. `Key(view, v)` is made when the index is brought
/// up to date after a change of the version's state, so it may depend on that state but not on time. The index is
/// brought up to date only when room is needed.
/// `Key::kScore` names the number that keys compare, and `key.score()` is that number, to explain a choice.
/// @tparam kVerb  kDrop (only droppable versions, see View::droppable()) or kSwapOut (any evictable version)
template <class Key, Verb kVerb = Verb::kDrop>
class EvictLeast : public Policy, public Explainer {
 public:
  void start(const View& view) override { index_.reset(view.trace().versions().size()); }

  void make_room(const View& view, const Request&, std::vector<Action>& out) override {
    view.drain_changes([&](VersionId v) {
      if ((kVerb == Verb::kDrop ? view.droppable(v) : view.evictable(v)) && may_go(view, v))
        index_.set(v.index(), Key{view, v});
      else
        index_.clear(v.index());
    });
    ++evaluations_;
    if (index_.winner() != Tournament<Key>::kNone) out.push_back({.verb = kVerb, .subject = index_.winner()});
  }

  Ranking ranking(const View&, const Request&) override { return ranking_of(index_); }

  std::int64_t cost_evaluations() const override { return evaluations_; }

 protected:
  /// Whether a version may ever be evicted. The answer for a version never changes.
  virtual bool may_go(const View&, VersionId) const { return true; }

 private:
  Tournament<Key> index_;
  std::int64_t evaluations_ = 0;
};

/// Key: the version that was used longest ago; of several, the one that became evictable last.
struct OldestFirst {
  static constexpr const char* kScore = "last use, ns";
  Nanos last_access;
  std::uint32_t order = 0;
  OldestFirst() = default;
  OldestFirst(const View& view, VersionId v) : last_access{view.state(v).last_access}, order{view.state(v).order} {}
  double score() const { return static_cast<double>(last_access.count()); }
  bool before(const OldestFirst& other) const {
    return last_access != other.last_access ? last_access < other.last_access : order > other.order;
  }
};

template <class Key>
using DropLeast = EvictLeast<Key, Verb::kDrop>;
template <class Key>
using SwapOutLeast = EvictLeast<Key, Verb::kSwapOut>;

/// Key: the version whose next reader comes last in the program (Belady's rule). A version that no later op reads
/// counts as read after the last op if its buffer outlives the step; otherwise it comes first of all. Ties: the one
/// that became evictable last.
struct FurthestFirst {
  static constexpr const char* kScore = "next reader, op";
  std::uint32_t next = 0;
  std::uint32_t order = 0;
  FurthestFirst() = default;
  FurthestFirst(const View& view, VersionId v) : order{view.state(v).order} {
    const std::span readers = view.trace().readers(v);
    const auto reader = std::upper_bound(readers.begin(), readers.end(), view.op());
    const Buffer& buffer = view.trace().buffer(view.trace().version(v).buffer);
    const auto ops = static_cast<std::uint32_t>(view.trace().ops().size());
    next = reader != readers.end() ? reader->value() : buffer.outlives ? ops : ops + 1;
  }
  double score() const { return next; }
  bool before(const FurthestFirst& other) const { return next != other.next ? next > other.next : order > other.order; }
};

}  // namespace tidepool
