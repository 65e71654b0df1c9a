#include "policies/pool/stalloc/stalloc_pool.hpp"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <iterator>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "simulator/solvers/packing/heuristic.hpp"

namespace tidepool {

namespace {

/// A block of the step and its life.
struct LiveBlock {
  std::uint32_t item = 0;
  Interval life;
};

/// The height in use over time, as steps: each step lasts from its position to the next step.
class Skyline {
 public:
  /// The largest height in [from, to); none if it is above `limit`.
  std::optional<Bytes> below(Bytes limit, std::int64_t from, std::int64_t to) const {
    Bytes most;
    for (auto step = at(from); step != steps_.end() && step->from < to; ++step) {
      most = std::max(most, step->height);
      if (most > limit) return {};
    }
    return most;
  }
  void raise(std::int64_t from, std::int64_t to, Bytes height) {
    const Bytes after = std::prev(behind(to))->height;
    const auto first = std::lower_bound(steps_.begin(), steps_.end(), from, starts_before);
    const auto last = behind(to);
    const Step added[] = {{from, height}, {to, after}};
    steps_.insert(steps_.erase(first, last), std::begin(added), std::end(added));
  }

 private:
  struct Step {
    std::int64_t from = 0;
    Bytes height;
  };
  static bool starts_before(const Step& step, std::int64_t position) { return step.from < position; }

  /// The first step that begins behind `position`.
  std::vector<Step>::const_iterator behind(std::int64_t position) const {
    return std::upper_bound(steps_.begin(), steps_.end(), position,
                            [](std::int64_t value, const Step& step) { return value < step.from; });
  }
  std::vector<Step>::const_iterator at(std::int64_t position) const { return std::prev(behind(position)); }

  std::vector<Step> steps_{{std::numeric_limits<std::int64_t>::min(), {}}};
};

/// Blocks of one size; each begins after the previous one has ended.
using Row = std::vector<LiveBlock>;

/// @param blocks  by birth
std::vector<Row> rows_of(const std::vector<LiveBlock>& blocks) {
  std::vector<Row> rows;
  std::multimap<std::int64_t, std::size_t, std::greater<>> by_end;  // rows, the latest end first
  for (const LiveBlock& block : blocks) {
    const auto latest = by_end.lower_bound(block.life.lower);
    std::size_t row = rows.size();
    if (latest == by_end.end()) {
      rows.emplace_back();
    } else {
      const auto chosen = std::min_element(latest, by_end.upper_bound(latest->first),
                                           [](const auto& a, const auto& b) { return a.second < b.second; });
      row = chosen->second;
      by_end.erase(chosen);
    }
    rows[row].push_back(block);
    by_end.emplace(block.life.upper, row);
  }
  return rows;
}

/// The neighbours of a position. The first and the last of all positions are their own neighbours.
std::int64_t before(std::int64_t position) { return position - (position != std::numeric_limits<std::int64_t>::min()); }
std::int64_t behind(std::int64_t position) { return position + (position != std::numeric_limits<std::int64_t>::max()); }

/// A row with its reserved memory, and the smaller blocks that use the same memory.
struct MemoryLayer {
  Bytes offset, size;
  Skyline used;

  /// The offset at which a block fits into the layer; none if it does not fit.
  std::optional<Bytes> place_for(const Item& item, const Skyline& now, Interval life) const {
    if (size < item.size) return {};
    const std::optional<Bytes> height = now.below(size - item.size, life.lower, behind(life.upper));
    if (!height) return {};
    const Bytes place = round_up(offset + *height, item.alignment);
    if (place + item.size > offset + size) return {};
    return place;
  }
};

class SplitAndFuse {
 public:
  SplitAndFuse(const Instance& instance, Bytes base)
      : instance_{instance}, top_{base}, offsets_(instance.items.size()) {}

  void stack(std::uint32_t item) {
    offsets_[item] = round_up(top_, instance_.items[item].alignment);
    top_ = offsets_[item] + instance_.items[item].size;
  }

  /// Places all blocks of one size. @param blocks  by birth
  void place(const std::vector<LiveBlock>& blocks) {
    std::vector<LiveBlock> rest;
    for (const Row& row : rows_of(blocks)) rest.insert(rest.end(), row.begin(), row.end());
    const std::vector<Taker> takers = takers_of(rest);
    std::vector<bool> placed(rest.size());
    const std::vector<std::size_t> order = rehearsed_order(rest, takers);
    for (const Taker& taker : takers)
      for (const std::size_t i : order)
        if (!placed[i] && taker.may[i]) placed[i] = put_into(layers_[taker.layer], rest[i]);
    std::size_t kept = 0;
    for (std::size_t i = 0; i < rest.size(); ++i)
      if (!placed[i]) rest[kept++] = rest[i];
    rest.resize(kept);
    std::stable_sort(rest.begin(), rest.end(),
                     [](const LiveBlock& a, const LiveBlock& b) { return a.life.lower < b.life.lower; });
    for (const Row& row : rows_of(rest)) add_layer(row);
  }

  std::vector<Bytes> take() { return std::move(offsets_); }

 private:
  const Item& item_of(const LiveBlock& block) const { return instance_.items[block.item]; }

  /// A layer, and the blocks for which it has room now. Blocks without room now will not find room later.
  struct Taker {
    std::size_t layer = 0;
    std::vector<bool> may;  ///< by block
  };
  std::vector<Taker> takers_of(const std::vector<LiveBlock>& blocks) const {
    std::vector<Taker> takers;
    for (std::size_t layer = 0; layer < layers_.size(); ++layer) {
      Taker taker{layer, std::vector<bool>(blocks.size())};
      bool any = false;
      for (std::size_t i = 0; i < blocks.size(); ++i) {
        const MemoryLayer& into = layers_[layer];
        taker.may[i] = into.place_for(item_of(blocks[i]), into.used, blocks[i].life).has_value();
        any = any || taker.may[i];
      }
      if (any) takers.push_back(std::move(taker));
    }
    return takers;
  }

  /// The order of the blocks after the six rehearsals, see StallocPlanner.
  std::vector<std::size_t> rehearsed_order(const std::vector<LiveBlock>& blocks,
                                           const std::vector<Taker>& takers) const {
    std::vector<std::size_t> order(blocks.size());
    std::iota(order.begin(), order.end(), std::size_t{});
    constexpr int kRehearsals = 6;
    for (int i = 0; i < kRehearsals; ++i) {
      std::vector<bool> taken(order.size());  // by position in the order
      for (const Taker& taker : takers) rehearse(taker, blocks, order, taken);
      std::vector<std::size_t> next;
      for (std::size_t at = 0; at < taken.size(); ++at)
        if (!taken[at]) next.push_back(at);
      std::vector<bool> moved(order.size());
      for (const std::size_t at : next) moved[at] = true;
      std::copy_if(order.begin(), order.end(), std::back_inserter(next), [&](std::size_t at) { return !moved[at]; });
      if (next == order) break;  // all further rehearsals would give the same order
      order = std::move(next);
    }
    return order;
  }

  void rehearse(const Taker& taker, const std::vector<LiveBlock>& blocks, const std::vector<std::size_t>& order,
                std::vector<bool>& taken) const {
    const MemoryLayer& layer = layers_[taker.layer];
    Skyline used = layer.used;
    for (std::size_t at = 0; at < order.size(); ++at) {
      if (!taker.may[order[at]]) continue;
      const LiveBlock& block = blocks[order[at]];
      const auto place = layer.place_for(item_of(block), used, block.life);
      if (!place) continue;
      used.raise(block.life.lower, behind(block.life.upper), *place + item_of(block).size - layer.offset);
      taken[at] = true;
    }
  }

  bool put_into(MemoryLayer& layer, const LiveBlock& block) {
    const auto place = layer.place_for(item_of(block), layer.used, block.life);
    if (!place) return false;
    layer.used.raise(block.life.lower, behind(block.life.upper), *place + item_of(block).size - layer.offset);
    offsets_[block.item] = *place;
    return true;
  }

  void add_layer(const Row& row) {
    MemoryLayer layer{.offset = top_, .size = item_of(row.front()).size, .used = {}};
    for (const LiveBlock& block : row) layer.offset = round_up(layer.offset, item_of(block).alignment);
    for (const LiveBlock& block : row) {
      layer.used.raise(before(block.life.lower), block.life.upper, layer.size);
      offsets_[block.item] = layer.offset;
    }
    top_ = layer.offset + layer.size;
    layers_.push_back(std::move(layer));
  }

  const Instance& instance_;
  Bytes top_;
  std::vector<Bytes> offsets_;
  std::vector<MemoryLayer> layers_;
};

Interval hull_of(std::span<const Interval> lives) { return {lives.front().lower, lives.back().upper}; }

}  // namespace

Layout StallocPlanner::plan(const Instance& instance, const PackingLimits& limits) {
  Interval whole{std::numeric_limits<std::int64_t>::max(), std::numeric_limits<std::int64_t>::min()};
  Bytes base;
  for (const Item& item : instance.items) {
    if (item.fixed) base = std::max(base, *item.fixed + item.size);
    for (const Interval& life : instance.lives(item))
      whole = {std::min(whole.lower, life.lower), std::max(whole.upper, life.upper)};
  }
  SplitAndFuse fuse{instance, base};
  std::map<Bytes, std::vector<LiveBlock>, std::greater<>> by_size;
  for (std::uint32_t i = 0; i < instance.items.size(); ++i) {
    const Item& item = instance.items[i];
    const std::span<const Interval> lives = instance.lives(item);
    if (item.fixed || item.size == Bytes{} || lives.empty()) continue;
    if (const Interval life = hull_of(lives); life == whole)
      fuse.stack(i);
    else
      by_size[item.size].push_back({i, life});
  }
  for (auto& [size, blocks] : by_size) {
    std::stable_sort(blocks.begin(), blocks.end(),
                     [](const LiveBlock& a, const LiveBlock& b) { return a.life.lower < b.life.lower; });
    fuse.place(blocks);
  }
  std::vector<Bytes> offsets = fuse.take();
  for (std::size_t i = 0; i < offsets.size(); ++i)
    if (instance.items[i].fixed) offsets[i] = *instance.items[i].fixed;
  return judged(instance, std::move(offsets), limits);
}

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
