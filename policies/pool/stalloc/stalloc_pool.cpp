#include "policies/pool/stalloc/stalloc_pool.hpp"

#include <algorithm>
#include <utility>

namespace tidepool {

StallocPool::StallocPool(const Options& options)
    : owner_{"stalloc(" + options.text() + ")"}, alignment_{trace_alignment(options)} {}

void StallocPool::start(const Trace& trace, Bytes capacity, Device& device) {
  trace_ = &trace;
  planned_ = planned_places(owner_, trace, alignment_, planner_);
  at_ = planned_->height <= capacity ? device.reserve(std::max(planned_->height, alignment_)) : std::nullopt;
  holes_.emplace(at_ ? planned_->height : Bytes{});
  rest_.emplace(CachingConfig{});
  rest_->start(trace, capacity, device);
  served_ = reused_ = cached_ = 0;

  lives_.assign(trace.buffers().size(), {-1, static_cast<std::int64_t>(trace.events().size())});
  for (std::size_t i = 0; i < trace.events().size(); ++i) {
    const Event& event = trace.events()[i];
    if (event.kind == EventKind::kAlloc) lives_[event.id].lower = static_cast<std::int64_t>(i);
    if (event.kind == EventKind::kFree) lives_[event.id].upper = static_cast<std::int64_t>(i);
  }
  by_address_.clear();
  for (std::size_t i = 0; i < lives_.size(); ++i) {
    const Bytes from = planned_->offsets[i];
    by_address_.push_back({from, from + place_size(trace.buffers()[i].size), lives_[i]});
  }
  std::sort(by_address_.begin(), by_address_.end(),
            [](const PlannedRange& a, const PlannedRange& b) { return a.from < b.from; });
}

Bytes StallocPool::place_size(Bytes requested) const { return std::max(round_up(requested, alignment_), alignment_); }

std::optional<Block> StallocPool::place(const Request& request) {
  const Bytes size = place_size(request.size);
  if (const std::optional<Bytes> planned = place_planned(request, size)) {
    ++served_;
    return Block{*at_ + *planned, size};
  }
  if (const std::optional<Bytes> idle = place_idle(request, size)) {
    ++reused_;
    return Block{*at_ + *idle, size};
  }
  std::optional<Block> block = rest_->place(request);
  cached_ += block.has_value();
  return block;
}

std::optional<Bytes> StallocPool::place_planned(const Request& request, Bytes size) {
  if (!at_ || !request.version.valid()) return {};
  const Bytes planned = planned_->offsets[trace_->version(request.version).buffer.index()];
  if (!holes_->place_at(planned, size)) return {};
  return planned;
}

std::optional<Bytes> StallocPool::place_idle(const Request& request, Bytes size) {
  if (!at_) return {};
  const Interval life = life_from(request);
  std::optional<std::pair<Bytes, Bytes>> best;  // size and address
  const auto offer = [&](Bytes from, Bytes to) {
    if (from + size <= to && (!best || to - from < best->first)) best = {to - from, from};
  };
  auto next = by_address_.begin();
  Bytes idle;  // ranges below this address are offered, or the plan needs them
  holes_->for_each([&](Bytes address, Bytes length) {
    const Bytes end = address + length;
    idle = std::max(idle, address);
    for (; next != by_address_.end() && next->from < end; ++next) {
      if (next->life.lower >= life.upper || life.lower >= next->life.upper) continue;
      offer(idle, next->from);
      idle = std::max(idle, next->to);
    }
    offer(idle, end);
  });
  if (!best) return {};
  holes_->place_at(best->second, size);
  return best->second;
}

Interval StallocPool::life_from(const Request& request) const {
  const std::size_t now = request.before.valid() ? trace_->position(request.before) : trace_->events().size();
  const auto begin = static_cast<std::int64_t>(now);
  const bool known = request.version.valid();
  return {begin, std::max(begin + 1, known ? lives_[trace_->version(request.version).buffer.index()].upper : 0)};
}

void StallocPool::release(const Block& block) {
  if (is_planned(block))
    holes_->release({.offset = block.offset - *at_, .size = block.size});
  else
    rest_->release(block);
}

void StallocPool::give_back(const Block& block, const Departure& departure) {
  if (is_planned(block))
    release(block);
  else
    rest_->give_back(block, departure);
}

Bytes StallocPool::largest_hole() const { return std::max(holes_->largest(), rest_->largest_hole()); }

std::vector<Count> StallocPool::counts() const {
  return {{"planned_places", served_}, {"idle_places_reused", reused_}, {"caching_allocator_places", cached_}};
}

}  // namespace tidepool
