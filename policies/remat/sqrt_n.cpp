#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "simulator/registry.hpp"

namespace tidepool {
namespace {

constexpr std::uint32_t kNever = ~std::uint32_t{0};

/// A version of the forward phase that is read again behind it.
struct Kept {
  VersionId version;
  std::uint32_t made = 0;          // op
  std::uint32_t last_forward = 0;  // last op of the forward phase that uses it, at least `made`
  std::uint32_t first_again = 0;   // first op behind the forward phase that uses it
  std::uint32_t segment = 0;
};

struct Drop {
  std::uint32_t before = 0;  // op
  VersionId version;
};

struct Checkpoints {
  std::vector<Drop> drops;
  Bytes peak;       // by a sum of bytes
  Nanos recompute;  // of what is dropped
};

/// Cuts the forward phase of any op graph into segments and finds what can be dropped within each.
class Segmenter {
 public:
  explicit Segmenter(const Trace& trace) : trace_{trace}, backward_{first_backward_op(trace)} {
    find_live_bytes();
    find_kept();
  }

  Bytes total() const { return total_; }
  std::size_t kept() const { return kept_.size(); }

  /// Segments of at least `each` bytes of what is read again. What a later segment reads is a checkpoint; the rest is
  /// dropped after its last use in the forward phase, and is back when the first of its segment is needed. The last
  /// segment stays: the backward phase begins with it.
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
    std::vector<std::uint32_t> needed(segment + 1, kNever);  // by segment: when its first dropped version is
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
      plan.drops.push_back({gone, kept.version});
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
                     [](const Drop& a, const Drop& b) { return a.before < b.before; });
    return plan;
  }

 private:
  /// The first op marked as backward; where nothing is marked, the op behind the one at the largest sum of live bytes.
  static std::uint32_t first_backward_op(const Trace& trace) {
    for (std::size_t i = 0; i < trace.ops().size(); ++i)
      if (trace.ops()[i].phase == Phase::kBackward) return static_cast<std::uint32_t>(i);
    Bytes live, peak;
    std::uint32_t at = 0;
    for (const Step& step : trace.steps()) {
      if (step.kind == StepKind::kAlloc) live += trace.buffers()[step.id].size;
      if (step.kind == StepKind::kFree) live -= trace.buffers()[step.id].size;
      if (step.kind == StepKind::kRun && live > peak) peak = live, at = step.id + 1;
    }
    return at;
  }

  /// By op: bytes live while it runs; what exists at the start counts from the start.
  void find_live_bytes() {
    Bytes live;
    for (const Buffer& buffer : trace_.buffers())
      if (buffer.born_before) live += buffer.size;
    for (const Step& step : trace_.steps()) {
      if (step.kind == StepKind::kAlloc) live += trace_.buffers()[step.id].size;
      if (step.kind == StepKind::kFree) live -= trace_.buffers()[step.id].size;
      if (step.kind == StepKind::kRun) live_.push_back(live);
    }
  }

  void find_kept() {
    const std::uint32_t ops = static_cast<std::uint32_t>(trace_.ops().size());
    std::vector<bool> is_output(trace_.versions().size());
    for (const VersionId v : trace_.outputs()) is_output[trace_.root(v).index()] = true;
    std::vector<bool> replaced(trace_.versions().size());  // in place, in the forward phase
    for (std::size_t i = 0; i < trace_.versions().size(); ++i) {
      const Version& version = trace_.versions()[i];
      if (version.kind != VersionKind::kView && version.parent.valid() && version.producer.value() < backward_)
        replaced[version.parent.index()] = true;
    }
    for (std::uint32_t op = 0; op < std::min(backward_, ops); ++op) {
      if (trace_.op(OpId{op}).kind == OpKind::kSource) continue;
      for (const VersionId v : trace_.made(OpId{op})) {
        if (replaced[v.index()] || trace_.size(v) == Bytes{}) continue;
        Kept kept{v, op, op, is_output[v.index()] ? ops : kNever, 0};
        const auto use = [&](OpId user) {
          if (user.value() < backward_)
            kept.last_forward = std::max(kept.last_forward, user.value());
          else
            kept.first_again = std::min(kept.first_again, user.value());
        };
        for (const OpId reader : trace_.readers(v)) use(reader);
        for (const OpId viewer : trace_.viewers(v)) use(viewer);
        if (kept.first_again == kNever) continue;  // the program lets it go itself
        kept_.push_back(kept);
        total_ += trace_.size(v);
      }
    }
  }

  const Trace& trace_;
  const std::uint32_t backward_;
  std::vector<Bytes> live_;  // by op
  std::vector<Kept> kept_;   // in the order in which they are made
  Bytes total_;
  std::vector<Bytes> change_;
};

/// Sublinear memory: cuts the forward phase into segments of about equal bytes, keeps what later segments read (the
/// checkpoints), drops the rest after its last use in the forward phase, and recomputes a segment when the backward
/// phase comes to it. A chain of n equal ops with k segments holds k + n / k buffers at most and runs at most one
/// forward phase again. The size of the segments is given, or found as in the paper by trying: of the divisions of the
/// bytes by 1, 2, ... (up to about twice the square root of the number of buffers) the one that recomputes least within
/// the capacity, by a sum of bytes; else the one with the least peak. Only what can be recomputed is ever dropped.
/// Plans in O(ops * sqrt(buffers)), then O(1) per drop. Paper: Chen, Xu, Zhang, Guestrin, "Training Deep Nets with
/// Sublinear Memory Cost", 2016 (arXiv 1604.06174), sections 3 and 4, algorithms 2 and 3.
class SqrtN final : public Policy {
 public:
  explicit SqrtN(Bytes segment) : segment_{segment} {}

  std::vector<Action> plan(const Trace& trace, const Machine&, Bytes capacity) override {
    Segmenter segmenter{trace};
    if (segment_ > Bytes{}) {
      drops_ = segmenter.cut(segment_).drops;
      return {};
    }
    const auto tries = static_cast<std::int64_t>(2 * std::sqrt(static_cast<double>(segmenter.kept()))) + 1;
    Checkpoints best;
    for (std::int64_t k = 1; k <= tries; ++k) {
      const Bytes each{(segmenter.total().count() + k - 1) / k};
      Checkpoints next = segmenter.cut(each);
      if (k == 1 || better(next, best, capacity)) best = std::move(next);
    }
    drops_ = std::move(best.drops);
    return {};  // what is dropped is decided when it is due: it may be gone or in use by then
  }

  void start(const View&) override { next_ = 0; }

  void before_run(const View& view, OpId op, std::vector<Action>& out) override {
    for (; next_ < drops_.size() && drops_[next_].before <= op.value(); ++next_)
      if (view.droppable(drops_[next_].version))
        out.push_back({.verb = Verb::kDrop, .subject = drops_[next_].version.value()});
  }

 private:
  static bool better(const Checkpoints& a, const Checkpoints& b, Bytes capacity) {
    const bool a_fits = a.peak <= capacity, b_fits = b.peak <= capacity;
    if (a_fits != b_fits) return a_fits;
    if (!a_fits && a.peak != b.peak) return a.peak < b.peak;
    return a.recompute < b.recompute;
  }

  Bytes segment_;
  std::vector<Drop> drops_;  // by op
  std::size_t next_ = 0;
};

const RegisterPolicy kRegistered{
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
