// Order among streams: the point up to which each stream has waited for each other stream.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "traces/trace.hpp"

namespace tidepool {

/// The happens-before order among the ops that a program has issued so far. An op comes after all ops issued to its
/// stream before it, after the ops that the trace's orders name, after the producers of the versions that it reads, and
/// after all ops before any of these. O(uses * streams) over the whole program; no cost if there is only one stream.
class StreamOrder {
 public:
  explicit StreamOrder(const Trace& trace) : trace_{&trace}, streams_{trace.data().streams.size()} {
    restart();
    if (streams_ > 1) of_op_.resize(trace.ops().size() * streams_);
  }

  /// Issues the ops before `before`; all ops if it is not valid. Starts again if more have been issued already.
  void issue_up_to(OpId before) {
    const std::size_t end = before.valid() ? before.index() : trace_->ops().size();
    if (end < issued_) restart();
    for (; issued_ < end; ++issued_) issue(OpId{issued_});
  }

  /// The point up to which `stream` has been issued: the number of its last op plus one.
  std::uint32_t issued(StreamId stream) const { return last_[stream.index()]; }
  /// Whether ops issued to `waiter` from now on come after all ops of `stream` up to `point`, an earlier result of
  /// issued().
  bool after(StreamId waiter, StreamId stream, std::uint32_t point) const {
    return waiter == stream || now_[waiter.index() * streams_ + stream.index()] >= point;
  }

 private:
  void restart() {
    issued_ = 0;
    next_order_ = 0;
    last_.assign(streams_, 0);
    now_.assign(streams_ * streams_, 0);
  }

  void issue(OpId id) {
    const std::size_t own = trace_->op(id).stream.index();
    last_[own] = id.value() + 1;
    if (streams_ == 1) return;
    std::uint32_t* const clock = now_.data() + own * streams_;
    const auto wait_for = [&](OpId other) {
      const std::uint32_t* const theirs = of_op_.data() + other.index() * streams_;
      for (std::size_t i = 0; i < streams_; ++i) clock[i] = std::max(clock[i], theirs[i]);
    };
    const auto& orders = trace_->data().orders;
    while (next_order_ < orders.size() && orders[next_order_].after < id) ++next_order_;
    for (std::size_t i = next_order_; i < orders.size() && orders[i].after == id; ++i) wait_for(orders[i].before);
    for (const Use& use : trace_->uses(id))
      if (use.in.valid())
        if (const OpId producer = trace_->version(trace_->root(use.in)).producer; producer.valid()) wait_for(producer);
    clock[own] = id.value() + 1;
    std::copy_n(clock, streams_, of_op_.data() + id.index() * streams_);
  }

  const Trace* trace_;
  std::size_t streams_, issued_ = 0, next_order_ = 0;
  std::vector<std::uint32_t> last_;  // by stream
  std::vector<std::uint32_t> now_;   // [waiter][stream]: the point of `stream` that the next op of `waiter` comes after
  std::vector<std::uint32_t> of_op_;  // [op][stream]: the point of `stream` that ops after this op come after
};

}  // namespace tidepool
