#include "simulator/packing/stream_ends.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

namespace tidepool {
namespace {

/// By stream: the last op of it that has ended; ops are counted in program order, from 1.
using Clock = std::vector<std::int64_t>;

void join(Clock& clock, const Clock& other) {
  for (std::size_t t = 0; t < clock.size(); ++t) clock[t] = std::max(clock[t], other[t]);
}

class Walk {
 public:
  Walk(const Trace& trace, std::uint16_t device)
      : trace_{trace},
        device_{device},
        known_(trace.data().streams.size()),
        number_(trace.ops().size()),
        last_use_(trace.buffers().size()),
        ends_(trace.buffers().size(), -1),
        last_birth_(known_.size(), -1) {
    for (std::size_t s = 0; s < known_.size(); ++s) {
      Clock nothing(known_.size(), 0);
      nothing[s] = std::numeric_limits<std::int64_t>::max();  // a stream is always behind itself
      known_[s].emplace_back(0, std::move(nothing));
    }
  }

  std::vector<std::int64_t> run() {
    find_last_births();
    for (const Step& step : trace_.steps()) {
      if (step.kind == StepKind::kRun) run_op(OpId{step.id});
      if (!counts(step)) continue;
      if (step.kind == StepKind::kFree) free(step.id);
      ++position_;
    }
    for (const Freed& freed : waiting_)
      for (const std::size_t s : freed.behind) raise(freed.buffer, last_birth_[s] + 1);
    return std::move(ends_);
  }

 private:
  /// A freed buffer, and the streams that use later buffers and are not ordered behind its uses yet.
  struct Freed {
    std::uint32_t buffer = 0;
    std::vector<std::size_t> behind;
  };

  bool counts(const Step& step) const {
    return (step.kind == StepKind::kAlloc || step.kind == StepKind::kFree) &&
           trace_.buffers()[step.id].device == device_;
  }
  std::uint32_t buffer_of(const Use& use) const {
    return trace_.version(use.in.valid() ? use.in : use.out).buffer.value();
  }

  /// By stream: the position at which the last buffer that it will ever use is born.
  void find_last_births() {
    std::vector<std::int64_t> born(trace_.buffers().size(), -1);
    std::int64_t position = 0;
    for (const Step& step : trace_.steps()) {
      if (step.kind == StepKind::kAlloc && counts(step)) born[step.id] = position;
      position += counts(step) ? 1 : 0;
    }
    for (std::uint32_t op = 0; op < trace_.ops().size(); ++op)
      for (const Use& use : trace_.uses(OpId{op})) {
        std::int64_t& last = last_birth_[trace_.op(OpId{op}).stream.index()];
        last = std::max(last, born[buffer_of(use)]);
      }
  }

  /// What a stream knew when its op of this number began.
  const Clock& clock_at(std::size_t stream, std::int64_t number) const {
    const auto after = std::upper_bound(known_[stream].begin(), known_[stream].end(), number,
                                        [](std::int64_t n, const auto& entry) { return n < entry.first; });
    return std::prev(after)->second;
  }

  void run_op(OpId id) {
    const std::size_t s = trace_.op(id).stream.index();
    number_[id.index()] = ++count_;
    Clock now = known_[s].back().second;
    const auto wait_for = [&](OpId before) {
      const std::size_t t = trace_.op(before).stream.index();
      const std::int64_t number = number_[before.index()];
      if (number <= now[t]) return;
      join(now, clock_at(t, number));
      now[t] = number;
    };
    const auto& orders = trace_.data().orders;
    while (next_order_ < orders.size() && orders[next_order_].after < id) ++next_order_;
    for (std::size_t i = next_order_; i < orders.size() && orders[i].after == id; ++i) wait_for(orders[i].before);
    for (const Use& use : trace_.uses(id)) {
      if (use.in.valid())
        if (const OpId producer = trace_.version(trace_.root(use.in)).producer; producer.valid()) wait_for(producer);
      last_use_[buffer_of(use)][s] = count_;
    }
    if (now == known_[s].back().second) return;
    known_[s].emplace_back(count_, std::move(now));
    settle(s);
  }

  bool is_behind(std::size_t stream, std::uint32_t buffer) const {
    const Clock& known = known_[stream].back().second;
    return std::all_of(last_use_[buffer].begin(), last_use_[buffer].end(),
                       [&](const auto& use) { return use.second <= known[use.first]; });
  }

  void free(std::uint32_t buffer) {
    ends_[buffer] = position_;
    Freed freed{buffer, {}};
    for (std::size_t s = 0; s < known_.size(); ++s)
      if (last_birth_[s] > position_ && !is_behind(s, buffer)) freed.behind.push_back(s);
    if (!freed.behind.empty()) waiting_.push_back(std::move(freed));
  }

  /// The stream has just been ordered behind others.
  void settle(std::size_t stream) {
    for (Freed& freed : waiting_) {
      const auto found = std::find(freed.behind.begin(), freed.behind.end(), stream);
      if (found == freed.behind.end() || !is_behind(stream, freed.buffer)) continue;
      raise(freed.buffer, std::min(position_, last_birth_[stream] + 1));
      freed.behind.erase(found);
    }
    std::erase_if(waiting_, [](const Freed& freed) { return freed.behind.empty(); });
  }

  void raise(std::uint32_t buffer, std::int64_t position) { ends_[buffer] = std::max(ends_[buffer], position); }

  const Trace& trace_;
  std::uint16_t device_;
  std::vector<std::vector<std::pair<std::int64_t, Clock>>> known_;  // by stream: from which op on it knows what
  std::vector<std::int64_t> number_;                                // by op
  std::vector<std::map<std::size_t, std::int64_t>> last_use_;       // by buffer: by stream that uses it
  std::vector<std::int64_t> ends_, last_birth_;
  std::vector<Freed> waiting_;
  std::int64_t position_ = 0, count_ = 0;
  std::size_t next_order_ = 0;
};

}  // namespace

std::vector<std::int64_t> stream_ends(const Trace& trace, std::uint16_t device) { return Walk{trace, device}.run(); }

}  // namespace tidepool
