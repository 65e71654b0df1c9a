#include "policies/planning/search/reruns.hpp"

#include <algorithm>
#include <utility>

#include "policies/planning/remat/saved.hpp"
#include "policies/planning/search/gap_changes.hpp"

namespace tidepool {
namespace {

enum class At : std::uint8_t { kNowhere, kDevice, kHost, kDropped };

}  // namespace

Reruns::Reruns(const Trace& trace, const std::vector<Gap>& gaps)
    : trace_{trace}, gaps_{gaps}, released_(trace.ops().size()) {
  for (std::uint32_t i = 0; i < gaps.size(); ++i) released_[gaps[i].release].push_back(i);
}

/// The location of every version during a walk through the step.
class Reruns::Walk {
 public:
  Walk(const Reruns& reruns, std::vector<How> how)
      : trace_{reruns.trace_},
        gaps_{reruns.gaps_},
        reruns_{reruns},
        how_{std::move(how)},
        versions_(trace_.versions().size()),
        content_(trace_.buffers().size()),
        waiting_(trace_.ops().size()) {
    effect_.time.resize(trace_.ops().size());
    effect_.held.resize(trace_.ops().size());
    for (const Gap& gap : gaps_) effect_.due.push_back(gap.due);
    for (std::size_t b = 0; b < content_.size(); ++b)
      if (trace_.buffers()[b].born_before) begin(BufferId{b});
    for (std::uint32_t i = 0; i < gaps_.size(); ++i)
      if (gaps_[i].crosses && how_[i] == How::kCopied) set(gaps_[i].in, At::kHost, i);
  }

  Effect run() {
    for (const Event& event : trace_.events()) {
      if (event.kind == EventKind::kAlloc) begin(BufferId{event.id});
      if (event.kind == EventKind::kFree) versions_[content_[event.id].index()].at = At::kNowhere;
      if (event.kind == EventKind::kRun) run(OpId{event.id});
      if (!effect_.possible) break;
    }
    return std::move(effect_);
  }

 private:
  struct Where {
    At at = At::kNowhere;
    std::uint32_t gap = 0;  // the current gap, if the version is not resident
  };
  struct Frame {
    OpId op;
    std::size_t next_use, first_temporary;
  };

  void set(VersionId v, At at, std::uint32_t gap) { versions_[v.index()] = {at, gap}; }

  void begin(BufferId buffer) {
    const VersionId v = content_[buffer.index()] = trace_.first_version(buffer);
    versions_[v.index()].at = At::kDevice;
  }

  void run(OpId op) {
    op_ = op;
    for (const Use& use : trace_.uses(op))
      if (use.in.valid()) bring_back(trace_.root(use.in));
    if (!effect_.possible) return;
    drop_temporaries(0);
    for (const VersionId made : trace_.made(op)) {
      if (const VersionId replaced = trace_.version(made).parent; replaced.valid())
        versions_[replaced.index()].at = At::kNowhere;
      versions_[made.index()].at = At::kDevice;
      content_[trace_.version(made).buffer.index()] = made;
    }
    for (const std::uint32_t i : reruns_.released_[op.index()])
      if (how_[i] != How::kKept && versions_[gaps_[i].out.index()].at == At::kDevice)
        set(gaps_[i].out, how_[i] == How::kCopied ? At::kHost : At::kDropped, i);
  }

  bool there(VersionId v) {
    Where& where = versions_[v.index()];
    if (where.at == At::kHost) {
      shorten(where.gap);
      where.at = At::kDevice;
    }
    return where.at == At::kDevice;
  }

  void bring_back(VersionId v) {
    if (there(v)) return;
    enter(v);
    while (!frames_.empty() && effect_.possible) {
      Frame& frame = frames_.back();
      const std::span uses = trace_.uses(frame.op);
      while (frame.next_use < uses.size() &&
             (!uses[frame.next_use].in.valid() || there(trace_.root(uses[frame.next_use].in))))
        ++frame.next_use;
      if (frame.next_use < uses.size()) {
        enter(trace_.root(uses[frame.next_use].in));
      } else {
        run_again(frame.op, frame.first_temporary);
        frames_.pop_back();
      }
    }
  }

  void enter(VersionId v) {
    const OpId producer = trace_.version(v).producer;
    // If the op already waits for inputs, it would wait for its own output and never run.
    if (!producer.valid() || trace_.op(producer).kind == OpKind::kSource || waiting_[producer.index()])
      return void(effect_.possible = false);
    waiting_[producer.index()] = true;
    frames_.push_back({producer, 0, temporaries_.size()});
  }

  void run_again(OpId op, std::size_t first_temporary) {
    effect_.time[op_.index()] += trace_.op(op).duration;
    effect_.total += trace_.op(op).duration;
    for (const VersionId made : trace_.made(op)) {
      Where& where = versions_[made.index()];
      if (where.at == At::kDropped) {
        shorten(where.gap);
      } else if (where.at == At::kNowhere) {
        held_ += trace_.size(made);
        temporaries_.push_back(made);
      }
      if (where.at != At::kHost) where.at = At::kDevice;
    }
    effect_.held[op_.index()] = std::max(effect_.held[op_.index()], held_);
    waiting_[op.index()] = false;
    drop_temporaries(first_temporary, op);
  }

  /// Drops the temporary versions from `first` on, except those that `made_by` made.
  void drop_temporaries(std::size_t first, OpId made_by = {}) {
    std::size_t kept = first;
    for (std::size_t i = first; i < temporaries_.size(); ++i) {
      const VersionId v = temporaries_[i];
      if (made_by.valid() && trace_.version(v).producer == made_by) {
        temporaries_[kept++] = v;
        continue;
      }
      versions_[v.index()] = {};
      held_ -= trace_.size(v);
    }
    temporaries_.resize(kept);
  }

  void shorten(std::uint32_t gap) {
    const auto n = static_cast<std::uint32_t>(trace_.ops().size());
    effect_.due[gap] = op_.value() + (gaps_[gap].due >= n ? n : 0);
  }

  const Trace& trace_;
  const std::vector<Gap>& gaps_;
  const Reruns& reruns_;
  std::vector<How> how_;            // by gap
  std::vector<Where> versions_;     // by version
  std::vector<VersionId> content_;  // by buffer
  std::vector<bool> waiting_;       // by op: whether its rerun waits for inputs
  std::vector<Frame> frames_;
  std::vector<VersionId> temporaries_;
  Bytes held_;
  OpId op_;
  Effect effect_;
};

Reruns::Effect Reruns::follow(std::span<const std::uint32_t> copied, std::span<const std::uint32_t> dropped) const {
  std::vector<How> how(gaps_.size());
  for (const std::uint32_t i : copied) how[i] = How::kCopied;
  for (const std::uint32_t i : dropped) how[i] = How::kDropped;
  return Walk{*this, std::move(how)}.run();
}

std::vector<Nanos> Reruns::costs() const {
  constexpr std::size_t kMostOps = 100;  // a version that needs more reruns is too costly for any plan
  const std::vector<std::uint32_t> ends = ends_of_versions(trace_);
  std::vector<std::uint32_t> asked(trace_.ops().size());  // by op: 1 + the last gap that it is rerun for
  const auto cost_of = [&](std::uint32_t i) {
    const Gap& gap = gaps_[i];
    if (gap.crosses) return kImpossible;
    Nanos cost;
    std::vector<VersionId> needed{gap.out};
    std::size_t ops = 0;
    while (!needed.empty()) {
      const OpId op = trace_.version(needed.back()).producer;
      needed.pop_back();
      if (!op.valid() || trace_.op(op).kind == OpKind::kSource) return kImpossible;
      if (std::exchange(asked[op.index()], i + 1) == i + 1) continue;
      if (++ops > kMostOps) return kImpossible;
      cost += trace_.op(op).duration;
      for (const Use& use : trace_.uses(op))
        if (use.in.valid() && ends[trace_.root(use.in).index()] <= gap.due) needed.push_back(trace_.root(use.in));
    }
    return cost;
  };
  std::vector<Nanos> costs;
  for (std::uint32_t i = 0; i < gaps_.size(); ++i) costs.push_back(cost_of(i));
  return costs;
}

}  // namespace tidepool
