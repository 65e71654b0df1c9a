// The simulation of Evaluator: ops, and copies beside them.
#include <algorithm>
#include <utility>

#include "policies/hybrid/tide/evaluator.hpp"

namespace tidepool {
namespace {

constexpr std::int64_t kBytesPerNano = 25;  // a wait of 1 ns for this many bytes above the capacity

}  // namespace

void Evaluator::simulate(Nanos longest) {
  const auto slots = static_cast<std::uint32_t>(model_.ops());
  const std::int64_t iterations = model_.spec.iterations > 1 ? 2 : 1;
  outs_.clear();
  ins_.clear();
  lanes_.reset();
  coming_ = leaving_ = leaving_at_begin_ = Bytes{};
  leaving_count_ = 0;
  time_ = iteration_began_ = Nanos{};
  room_version_ = outs_ended_ = slot_ = 0;
  head_version_ = -1;
  head_ = EvaluatedCopy::kNone;
  result_.start.assign(slots + 1, Nanos{});
  for (std::uint32_t i = 0; i < live_.size(); ++i) {
    if (result_.copies[i].ahead) live_[i].out_done = 0;
    if (result_.copies[i].due < slots) continue;
    live_[i].state = State::kOnHost;
    live_[i].due = result_.copies[i].due - slots;
    queue_in(i);
  }
  for (std::int64_t iteration = 0; iteration < iterations; ++iteration) {
    next_due_ = next_release_ = next_out_ = 0;
    counts_ = iteration + 1 == iterations;
    iteration_began_ = time_;
    for (std::uint32_t op = 0; op < slots; ++op) {
      run_op(op, iteration);
      if (counts_ && time_ - iteration_began_ + (model_.circle.period() - model_.circle.start[op + 1]) > longest)
        return;
    }
  }
  while (iterations > 1 && leaving_count_ > 0 && swapping_out()) finish_swap_out();
  result_.start[slots] = result_.period = time_ - iteration_began_;
}

void Evaluator::run_op(std::uint32_t op, std::int64_t iteration) {
  advance(time_);
  slot_ = iteration * static_cast<std::int64_t>(model_.ops()) + op;
  leaving_at_begin_ = leaving_;
  settle_arrivals(op);
  advance(time_);
  if (op == 0 && iteration > 0) drain();
  bring_due(op);
  if (lanes_.now() < time_) advance(time_);
  make_fit(op);
  if (counts_) result_.start[op] = time_ - iteration_began_;
  time_ += recomputation_.time()[op] + (model_.circle.start[op + 1] - model_.circle.start[op]);
  release_after(op, iteration);
}

/// Content that is due at this op counts as part of the load from now on.
void Evaluator::settle_arrivals(std::uint32_t op) {
  const auto slots = static_cast<std::uint32_t>(model_.ops());
  for (std::size_t at = next_due_; at < by_due_.size() && result_.copies[by_due_[at]].due % slots == op; ++at) {
    const Live& live = live_[by_due_[at]];
    if (live.due != slot_ || (live.state != State::kComing && live.state != State::kBack)) continue;
    const Bytes size = model_.gaps[result_.copies[by_due_[at]].gap].size;
    room_.add(live.came_in, slot_ - live.came_in, -size);
    if (slot_ > live.came_in) coming_ -= size;
    ++room_version_;
  }
}

/// Waits at the boundary for swap-outs of released content.
void Evaluator::drain() {
  while (leaving_count_ > 0 && swapping_out()) finish_swap_out();
  time_ = std::max(time_, lanes_.now());
}

void Evaluator::bring_due(std::uint32_t op) {
  const auto slots = static_cast<std::uint32_t>(model_.ops());
  for (; next_due_ < by_due_.size() && result_.copies[by_due_[next_due_]].due % slots == op; ++next_due_) {
    const std::uint32_t i = by_due_[next_due_];
    Live& live = live_[i];
    if (live.due != slot_) continue;
    if (live.state == State::kLeaving) {  // it never left
      live.state = State::kAway;
      leaving_ -= model_.gaps[result_.copies[i].gap].size;
      --leaving_count_;
      if (counts_) result_.copies[i].issue = result_.copies[i].due;
      continue;
    }
    if (live.state == State::kOnHost) {
      while (lanes_.copy(CopyLanes::kIn) != CopyLanes::kIdle) next_event(CopyLanes::kNever);
      begin_in(i);
    }
    while (live.state == State::kComing) next_event(CopyLanes::kNever);
    if (live.state == State::kBack) time_ = std::max(time_, live.back), live.state = State::kAway;
  }
}

/// Waits for swap-outs until the op's bytes fit, or for the bytes above the capacity.
void Evaluator::make_fit(std::uint32_t op) {
  for (;;) {
    const Bytes over = load_[op] + coming_ + leaving_ - capacity_;
    if (over <= Bytes{}) return;
    if (leaving_ > Bytes{} && swapping_out()) {
      finish_swap_out();
      time_ = std::max(time_, lanes_.now());
      continue;
    }
    result_.most_over = std::max(result_.most_over, over);
    if (counts_) ++result_.overs;
    time_ += Nanos{over.count() / kBytesPerNano + 1};
    return;
  }
}

void Evaluator::release_after(std::uint32_t op, std::int64_t iteration) {
  const std::vector<EvaluatedCopy>& copies = result_.copies;
  const auto out_follows = [&] { return next_out_ < by_out_.size() && copies[by_out_[next_out_]].out_from == op + 1; };
  const auto is_released = [&] { return next_release_ < copies.size() && copies[next_release_].release == op; };
  if (!out_follows() && !is_released()) return;
  const auto slots = static_cast<std::int64_t>(model_.ops());
  advance(time_);
  slot_ = iteration * slots + op + 1;
  leaving_at_begin_ = leaving_;
  for (; is_released(); ++next_release_) {
    const auto i = static_cast<std::uint32_t>(next_release_);
    const EvaluatedCopy& copy = copies[i];
    live_[i].due = iteration * slots + copy.due;
    const bool is_on_host =
        copy.source == EvaluatedCopy::kNone ||
        live_[copy.source].out_done >= iteration - (copies[copy.source].release > copy.release ? 1 : 0);
    if (is_on_host) {
      live_[i].state = State::kOnHost;
      queue_in(i);
    } else {
      live_[i].state = State::kLeaving;
      leaving_ += model_.gaps[copy.gap].size;
      ++leaving_count_;
    }
  }
  for (; out_follows(); ++next_out_)
    queue_out(by_out_[next_out_], iteration + (copies[by_out_[next_out_]].ahead ? 1 : 0));
}

void Evaluator::finish_swap_out() {
  const std::int64_t before = outs_ended_;
  while (outs_ended_ == before && swapping_out()) next_event(CopyLanes::kNever);
}

void Evaluator::queue_out(std::uint32_t copy, std::int64_t iteration) {
  const auto slots = static_cast<std::int64_t>(model_.ops());
  outs_.push_back({iteration * slots + result_.copies[copy].release, copy, iteration});
  std::push_heap(outs_.begin(), outs_.end());
}

void Evaluator::queue_in(std::uint32_t copy) {
  ins_.push_back({live_[copy].due, copy, 0});
  std::push_heap(ins_.begin(), ins_.end());
}

void Evaluator::begin_out() {
  if (lanes_.copy(CopyLanes::kOut) != CopyLanes::kIdle || outs_.empty()) return;
  std::pop_heap(outs_.begin(), outs_.end());
  const Queued next = outs_.back();
  outs_.pop_back();
  out_iteration_ = next.iteration;
  EvaluatedCopy& copy = result_.copies[next.copy];
  lanes_.begin(CopyLanes::kOut, next.copy, model_.out[copy.gap]);
  if (!counts_ && copy.out_op != EvaluatedCopy::kNone) return;
  const auto slots = static_cast<std::int64_t>(model_.ops());
  const std::int64_t at = slot_ - next.iteration * slots;
  copy.out_op = static_cast<std::uint32_t>(at < 0 ? at + slots : at);
  if (copy.ahead && at > copy.release) copy.out_op = EvaluatedCopy::kNone;
  copy.out_begins = lanes_.now();
}

/// Begins the swap-in that is due first, if it fits into the memory from now until it is due.
void Evaluator::begin_in_if_fits() {
  while (lanes_.copy(CopyLanes::kIn) == CopyLanes::kIdle && !ins_.empty()) {
    const Queued next = ins_.front();
    if (live_[next.copy].state != State::kOnHost || live_[next.copy].due != next.key) {
      std::pop_heap(ins_.begin(), ins_.end());
      ins_.pop_back();
      continue;
    }
    const Bytes size = model_.gaps[result_.copies[next.copy].gap].size;
    if (head_version_ != room_version_ || head_ != next.copy) {
      head_version_ = room_version_;
      head_ = next.copy;
      head_from_ = room_.last_above(slot_, next.key, capacity_ - size) + 1;
    }
    if (slot_ < head_from_) return;
    const Bytes load = load_[static_cast<std::size_t>(slot_) % model_.ops()];
    if (slot_ < next.key && load + coming_ + std::max(leaving_, leaving_at_begin_) + size > capacity_) return;
    begin_in(next.copy);
  }
}

void Evaluator::begin_in(std::uint32_t copy) {
  Live& live = live_[copy];
  EvaluatedCopy& each = result_.copies[copy];
  lanes_.begin(CopyLanes::kIn, copy, model_.in[each.gap]);
  live.state = State::kComing;
  live.came_in = slot_;
  if (slot_ < live.due) {
    room_.add(slot_, live.due - slot_, model_.gaps[each.gap].size);
    coming_ += model_.gaps[each.gap].size;
    ++room_version_;
  }
  each.issue = static_cast<std::uint32_t>(slot_ - (live.due - each.due));
}

void Evaluator::end_out(std::uint32_t copy) {
  live_[copy].out_done = std::max(live_[copy].out_done, out_iteration_);
  for (std::uint32_t served = live_[copy].serves; served != EvaluatedCopy::kNone; served = live_[served].next_served) {
    if (live_[served].state != State::kLeaving) continue;
    leaving_ -= model_.gaps[result_.copies[served].gap].size;
    --leaving_count_;
    live_[served].state = State::kOnHost;
    queue_in(served);
  }
  ++outs_ended_;
}

void Evaluator::next_event(Nanos limit) {
  begin_out();
  begin_in_if_fits();
  const std::uint32_t out = lanes_.copy(CopyLanes::kOut), in = lanes_.copy(CopyLanes::kIn);
  const auto [out_ended, in_ended] = lanes_.advance(limit);
  if (out_ended) end_out(out);
  if (in_ended) live_[in].back = lanes_.now(), live_[in].state = State::kBack;
}

void Evaluator::advance(Nanos time) {
  while (lanes_.now() < time) next_event(time);
  begin_out();
  begin_in_if_fits();
}

}  // namespace tidepool
