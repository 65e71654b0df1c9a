#include "simulator/solvers/packing/periodic.hpp"

#include <algorithm>
#include <map>
#include <tuple>

#include "simulator/engine/pools/hole_map.hpp"
#include "simulator/run_spec.hpp"
#include "traces/import/period.hpp"
#include "traces/step/buffer_events.hpp"

namespace tidepool {
namespace {

constexpr std::int64_t kBefore = -1;  // born before the first event

/// By buffer: the event that allocates it, and the one that frees it (one past the last event: none).
struct Lives {
  std::vector<std::int64_t> born, died;
};

Lives lives_of(const Trace& trace, const std::vector<BufferEvent>& events) {
  Lives lives;
  lives.born.assign(trace.buffers().size(), kBefore);
  lives.died.assign(trace.buffers().size(), static_cast<std::int64_t>(events.size()));
  for (std::size_t i = 0; i < events.size(); ++i)
    (events[i].begins ? lives.born : lives.died)[events[i].buffer] = static_cast<std::int64_t>(i);
  return lives;
}

/// A number for each event, equal for events with equal (alloc or free, size, age).
std::vector<std::uint32_t> symbols_of(const Trace& trace, const std::vector<BufferEvent>& events, const Lives& lives) {
  std::map<std::tuple<bool, std::int64_t, std::int64_t>, std::uint32_t> ids;
  std::vector<std::uint32_t> symbols;
  for (std::size_t i = 0; i < events.size(); ++i) {
    const BufferEvent event = events[i];
    const std::int64_t born = lives.born[event.buffer];
    const std::int64_t age = event.begins ? 0 : born == kBefore ? -1 : static_cast<std::int64_t>(i) - born;
    const std::tuple key{event.begins, trace.buffers()[event.buffer].size.count(), age};
    symbols.push_back(ids.try_emplace(key, static_cast<std::uint32_t>(ids.size())).first->second);
  }
  return symbols;
}

}  // namespace

std::int64_t SteadyLoop::copies() const {
  std::int64_t longest = 1;
  for (const Arc& arc : arcs) longest = std::max(longest, arc.life);
  return length == 0 ? 1 : (longest + length - 1) / length;
}

SteadyLoop find_loop(const Trace& trace, std::uint16_t device) {
  SteadyLoop loop;
  const std::vector<BufferEvent> events = buffer_events(trace, device);
  const Lives lives = lives_of(trace, events);
  const Period period = find_period(symbols_of(trace, events, lives));
  if (period.runs.empty()) return loop;
  const PeriodicRun& run =
      *std::max_element(period.runs.begin(), period.runs.end(),
                        [](const PeriodicRun& a, const PeriodicRun& b) { return a.last - a.first < b.last - b.first; });
  loop.length = static_cast<std::int64_t>(period.length);
  loop.first = static_cast<std::int64_t>(run.first);
  loop.last = static_cast<std::int64_t>(run.last);
  for (std::int64_t i = loop.first; i < loop.first + loop.length; ++i) {
    const BufferEvent event = events[static_cast<std::size_t>(i)];
    if (!event.begins) continue;
    const std::int64_t died = lives.died[event.buffer];
    if (died < loop.last)
      loop.arcs.push_back({trace.buffers()[event.buffer].size, i - loop.first, died - i});
    else
      loop.left_behind.push_back(event.buffer);
  }
  for (std::uint32_t id = 0; id < trace.buffers().size(); ++id)
    if (trace.buffers()[id].device == device && lives.born[id] < loop.first && lives.died[id] >= loop.last)
      loop.persistent.push_back(id);
  return loop;
}

Instance on_circle(const SteadyLoop& loop, const Trace& trace, Bytes alignment) {
  Instance instance;
  const std::int64_t copies = loop.copies(), end = copies * loop.length;
  const auto finish = [&](Item& item) {
    item.size = std::max(round_up(item.size, alignment), alignment);
    item.alignment = alignment;
  };
  for (std::int64_t k = 0; k < copies; ++k)
    for (const SteadyLoop::Arc& arc : loop.arcs) {
      const std::int64_t lower = k * loop.length + arc.birth, upper = lower + arc.life;
      if (upper <= end)
        finish(instance.add(arc.size, lower, upper));
      else
        finish(instance.add(arc.size, std::vector<Interval>{{0, upper - end}, {lower, end}}));
    }
  Bytes top;
  for (const std::uint32_t id : loop.persistent) {
    Item& item = instance.add(trace.buffers()[id].size, 0, std::max<std::int64_t>(end, 1));
    finish(item);
    item.fixed = top;
    top += item.size;
  }
  return instance;
}

LoopReplay replay_loop(const Trace& trace, std::uint16_t device, const SteadyLoop& loop, const Instance& instance,
                       std::span<const Bytes> offsets) {
  const std::vector<BufferEvent> events = buffer_events(trace, device);
  const Lives lives = lives_of(trace, events);
  const std::int64_t copies = loop.copies(), end = copies * loop.length;
  std::vector<std::size_t> arc_at(static_cast<std::size_t>(loop.length), loop.arcs.size());
  for (std::size_t i = 0; i < loop.arcs.size(); ++i) arc_at[static_cast<std::size_t>(loop.arcs[i].birth)] = i;

  LoopReplay replay;
  HoleMap holes{kNoLimit};
  std::map<std::uint32_t, Block> placed;  // by buffer
  const auto place = [&](std::uint32_t buffer, std::size_t item) {
    const Block block{offsets[item], instance.items[item].size};
    if (!holes.place_at(block.offset, block.size)) {
      ++replay.overlaps;
      return;
    }
    placed.emplace(buffer, block);
    ++replay.served;
  };
  const auto serve = [&](std::uint32_t buffer, std::int64_t event) {
    const std::int64_t phase = ((event - loop.first) % end + end) % end;
    const std::size_t arc = arc_at[static_cast<std::size_t>(phase % loop.length)];
    if (arc == loop.arcs.size() || loop.arcs[arc].size != trace.buffers()[buffer].size)
      ++replay.misses;
    else
      place(buffer, static_cast<std::size_t>(phase / loop.length) * loop.arcs.size() + arc);
  };

  for (std::size_t i = 0; i < loop.persistent.size(); ++i)
    place(loop.persistent[i], static_cast<std::size_t>(copies) * loop.arcs.size() + i);
  for (std::uint32_t id = 0; id < trace.buffers().size(); ++id) {
    const bool live_at_first = lives.born[id] < loop.first && lives.died[id] >= loop.first;
    if (trace.buffers()[id].device == device && live_at_first && lives.died[id] < loop.last) serve(id, lives.born[id]);
  }
  for (std::int64_t i = loop.first; i < loop.last; ++i) {
    const BufferEvent event = events[static_cast<std::size_t>(i)];
    if (event.begins) {
      serve(event.buffer, i);
    } else if (const auto found = placed.find(event.buffer); found != placed.end()) {
      holes.release(found->second);
      placed.erase(found);
    }
  }
  return replay;
}

}  // namespace tidepool
