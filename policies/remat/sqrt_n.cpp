#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "policies/planning/remat/draft.hpp"
#include "policies/planning/remat/saved.hpp"
#include "simulator/registry.hpp"

namespace tidepool {
namespace {

/// A saved version and the segment that it lies in.
struct Kept : Saved {
  std::uint32_t segment = 0;
};

struct Checkpoints {
  std::vector<Action> drops;
  Bytes peak;       // by a sum of bytes
  Nanos recompute;  // of the dropped versions
};

/// Cuts the forward phase of any op graph into segments, and finds the versions that each can drop.
class Segmenter {
 public:
  explicit Segmenter(const Trace& trace) : trace_{trace}, live_{live_bytes(trace)} {
    for (const Saved& saved : saved_versions(trace, first_backward_op(trace))) {
      kept_.push_back({saved});
      total_ += trace.size(saved.version);
    }
  }

  Bytes total() const { return total_; }
  std::size_t kept() const { return kept_.size(); }

  /// Cuts segments with at least `each` bytes of versions that are read again. A version that a later segment reads is
  /// a checkpoint. The others are dropped after their last use in the forward phase, and are back when the first
  /// dropped version of their segment is needed. The last segment stays: the backward phase begins with it.
  Checkpoints cut(Bytes each) {
    Bytes sum;
    std::uint32_t segment = 0;
    std::vector<std::uint32_t> end_of;  // by segment: its last op
    for (Kept& kept : kept_) {
      if (sum >= each) {
        end_of.push_back(kept.made - 1);
        sum = Bytes{}, ++segment;
      }
      kept.segment = segment;
      sum += trace_.size(kept.version);
    }
    std::vector<std::uint32_t> needed(segment + 1, kNever);  // by segment: when its first dropped version is needed
    const auto dropped = [&](const Kept& kept) {
      return kept.segment < segment && kept.last_forward <= end_of[kept.segment];
    };
    for (const Kept& kept : kept_)
      if (dropped(kept)) needed[kept.segment] = std::min(needed[kept.segment], kept.first_again);

    Checkpoints plan;
    change_.assign(live_.size() + 1, Bytes{});
    for (const Kept& kept : kept_) {
      const std::uint32_t gone = kept.last_forward + 1, back = needed[kept.segment];
      if (!dropped(kept) || gone >= back) continue;
      plan.drops.push_back({.verb = Verb::kDrop, .before = OpId{gone}, .subject = kept.version.value()});
      plan.recompute += trace_.op(trace_.version(kept.version).producer).duration;
      change_[gone] -= trace_.size(kept.version);
      change_[std::min<std::size_t>(back, live_.size())] += trace_.size(kept.version);
    }
    Bytes away;
    for (std::size_t i = 0; i < live_.size(); ++i) {
      away += change_[i];
      plan.peak = std::max(plan.peak, live_[i] + away);
    }
    std::stable_sort(plan.drops.begin(), plan.drops.end(),
                     [](const Action& a, const Action& b) { return a.before < b.before; });
    return plan;
  }

 private:
  const Trace& trace_;
  std::vector<Bytes> live_;  // by op: live bytes
  std::vector<Kept> kept_;   // versions in the order in which ops make them
  Bytes total_;
  std::vector<Bytes> change_;
};

/// Sublinear memory: cuts the forward phase into segments of about equal bytes, keeps versions that later segments read
/// (checkpoints), drops the others after their last use in the forward phase, and recomputes a segment when the
/// backward phase reaches it. A chain of n equal ops with k segments holds at most k + n / k buffers and runs at most
/// one forward phase again. The size of the segments is given, or found by trying, as in the paper: the bytes are
/// divided by 1, 2, ... (up to about twice the square root of the number of buffers). The division that recomputes
/// least within the capacity, by a sum of bytes, is taken; if none fits, the one with the least peak. Only versions
/// that can be recomputed are dropped. Plans in O(ops * sqrt(buffers)), then O(1) per drop. Paper: Chen, Xu, Zhang,
/// Guestrin, "Training Deep Nets with Sublinear Memory Cost", 2016 (arXiv 1604.06174), sections 3 and 4, algorithms 2
/// and 3.
class SqrtN final : public DraftPolicy {
 public:
  explicit SqrtN(Bytes segment) : segment_{segment} {}

  std::vector<Action> plan(const Trace& trace, const RunSpec& spec) override {
    Segmenter segmenter{trace};
    if (segment_ > Bytes{}) {
      draft_ = Draft{segmenter.cut(segment_).drops};
      return {};
    }
    const auto tries = static_cast<std::int64_t>(2 * std::sqrt(static_cast<double>(segmenter.kept()))) + 1;
    Checkpoints best;
    for (std::int64_t k = 1; k <= tries; ++k) {
      const Bytes each{(segmenter.total().count() + k - 1) / k};
      Checkpoints next = segmenter.cut(each);
      if (k == 1 || better(next, best, spec.capacity)) best = std::move(next);
    }
    draft_ = Draft{std::move(best.drops)};
    return {};
  }

 private:
  static bool better(const Checkpoints& a, const Checkpoints& b, Bytes capacity) {
    const bool a_fits = a.peak <= capacity, b_fits = b.peak <= capacity;
    if (a_fits != b_fits) return a_fits;
    if (!a_fits && a.peak != b.peak) return a.peak < b.peak;
    return a.recompute < b.recompute;
  }

  Bytes segment_;
};

const RegisterPolicy kSqrtN{
    {.name = "sqrt-n",
     .kind = PolicyKind::kRemat,
     .summary = "keeps checkpoints between segments of the forward phase, recomputes the rest",
     .paper = "Chen et al., Training Deep Nets with Sublinear Memory Cost, 2016, 3 and 4",
     .options = {{.name = "segment",
                  .default_value = "0B",
                  .unit = "bytes",
                  .meaning = "least bytes of a segment that are read again; 0B = the best of about sqrt(n) sizes"}},
     .make = [](const Options& o) { return std::make_unique<SqrtN>(o.bytes("segment")); }}};

}  // namespace
}  // namespace tidepool
