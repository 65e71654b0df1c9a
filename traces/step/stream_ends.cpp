#include "traces/step/stream_ends.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "traces/step/stream_order.hpp"

namespace tidepool {
namespace {

class Walk {
 public:
  Walk(const Trace& trace, std::uint16_t device)
      : trace_{trace},
        device_{device},
        order_{trace},
        last_use_(trace.buffers().size()),
        ends_(trace.buffers().size(), -1),
        last_birth_(trace.data().streams.size(), -1) {}

  std::vector<std::int64_t> run() {
    find_last_births();
    for (const Event& event : trace_.events()) {
      if (event.kind == EventKind::kRun) run_op(OpId{event.id});
      if (!counts(event)) continue;
      if (event.kind == EventKind::kFree) free(event.id);
      ++position_;
    }
    for (const Freed& freed : waiting_)
      for (const StreamId s : freed.behind) raise(freed.buffer, last_birth_[s.index()] + 1);
    return std::move(ends_);
  }

 private:
  /// A freed buffer, and the streams that use later buffers and are not ordered behind its uses yet.
  struct Freed {
    std::uint32_t buffer = 0;
    std::vector<StreamId> behind;
  };

  bool counts(const Event& step) const {
    return (step.kind == EventKind::kAlloc || step.kind == EventKind::kFree) &&
           trace_.buffers()[step.id].device == device_;
  }
  std::uint32_t buffer_of(const Use& use) const {
    return trace_.version(use.in.valid() ? use.in : use.out).buffer.value();
  }

  /// By stream: the last position at which a buffer that the stream uses is allocated.
  void find_last_births() {
    std::vector<std::int64_t> born(trace_.buffers().size(), -1);
    std::int64_t position = 0;
    for (const Event& event : trace_.events()) {
      if (event.kind == EventKind::kAlloc && counts(event)) born[event.id] = position;
      position += counts(event) ? 1 : 0;
    }
    for (std::uint32_t op = 0; op < trace_.ops().size(); ++op)
      for (const Use& use : trace_.uses(OpId{op})) {
        std::int64_t& last = last_birth_[trace_.op(OpId{op}).stream.index()];
        last = std::max(last, born[buffer_of(use)]);
      }
  }

  void run_op(OpId id) {
    order_.issue_up_to(OpId{id.index() + 1});
    const StreamId stream = trace_.op(id).stream;
    for (const Use& use : trace_.uses(id)) last_use_[buffer_of(use)][stream] = order_.issued(stream);
    settle(stream);
  }

  bool is_behind(StreamId stream, std::uint32_t buffer) const {
    return std::all_of(last_use_[buffer].begin(), last_use_[buffer].end(),
                       [&](const auto& use) { return order_.after(stream, use.first, use.second); });
  }

  void free(std::uint32_t buffer) {
    ends_[buffer] = position_;
    Freed freed{buffer, {}};
    for (std::size_t s = 0; s < last_birth_.size(); ++s)
      if (last_birth_[s] > position_ && !is_behind(StreamId{s}, buffer)) freed.behind.push_back(StreamId{s});
    if (!freed.behind.empty()) waiting_.push_back(std::move(freed));
  }

  /// The stream has been given an op, and may be ordered behind others now.
  void settle(StreamId stream) {
    for (Freed& freed : waiting_) {
      const auto found = std::find(freed.behind.begin(), freed.behind.end(), stream);
      if (found == freed.behind.end() || !is_behind(stream, freed.buffer)) continue;
      raise(freed.buffer, std::min(position_, last_birth_[stream.index()] + 1));
      freed.behind.erase(found);
    }
    std::erase_if(waiting_, [](const Freed& freed) { return freed.behind.empty(); });
  }

  void raise(std::uint32_t buffer, std::int64_t position) { ends_[buffer] = std::max(ends_[buffer], position); }

  const Trace& trace_;
  std::uint16_t device_;
  StreamOrder order_;
  std::vector<std::map<StreamId, std::uint32_t>> last_use_;  // by buffer: issued(stream) at its last use on each stream
  std::vector<std::int64_t> ends_, last_birth_;
  std::vector<Freed> waiting_;
  std::int64_t position_ = 0;
};

}  // namespace

std::vector<std::int64_t> stream_ends(const Trace& trace, std::uint16_t device) { return Walk{trace, device}.run(); }

}  // namespace tidepool
