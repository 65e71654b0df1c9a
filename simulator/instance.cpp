#include "simulator/instance.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>

#include "simulator/run_spec.hpp"
#include "traces/base/error.hpp"
#include "traces/step/buffer_events.hpp"
#include "traces/step/stream_ends.hpp"

namespace tidepool {
namespace {

void check_item(const Instance& instance, const Item& item) {
  const auto refuse = [&](const std::string& text) { throw InputError{fmt::format("buffer {}: {}", item.id, text)}; };
  if (item.size < Bytes{}) refuse(fmt::format("size is {} B; expected at least 0 B", item.size.count()));
  if (item.alignment < 1_B) refuse(fmt::format("alignment is {} B; expected at least 1 B", item.alignment.count()));
  if (item.fixed && *item.fixed < Bytes{})
    refuse(fmt::format("is fixed at {} B; expected at least 0 B", item.fixed->count()));
  if (item.fixed && item.fixed->count() % item.alignment.count() != 0)
    refuse(fmt::format("is fixed at {} B, which is no multiple of its alignment, {} B", item.fixed->count(),
                       item.alignment.count()));
  const Interval* before = nullptr;
  for (const Interval& life : instance.lives(item)) {
    if (life.lower >= life.upper)
      refuse(fmt::format("lives [{}, {}); expected a lifetime that ends after it begins", life.lower, life.upper));
    if (before && before->upper >= life.lower)
      refuse(fmt::format("lives [{}, {}) and then [{}, {}); expected ascending lifetimes with a gap between them",
                         before->lower, before->upper, life.lower, life.upper));
    before = &life;
  }
}

/// Refuses sizes that could overflow. No layout needs more than all items stacked on the highest fixed one, each with
/// its alignment wasted once.
void check_total(const Instance& instance) {
  Int128 highest = 0, sum = 0;
  for (const Item& item : instance.items) {
    sum += static_cast<Int128>(item.size.count()) + item.alignment.count() - 1;
    if (item.fixed) highest = std::max<Int128>(highest, item.fixed->count());
    if (highest + sum > kNoLimit.count())
      throw InputError{fmt::format("buffer {}: the sizes up to here exceed {} B", item.id, kNoLimit.count())};
  }
}

void check_fixed(const Instance& instance) {
  std::map<Bytes, const Item*> live;  // by offset, disjoint
  for (const PackingEvent& event : events_of(instance)) {
    const Item& item = instance.items[event.item];
    if (!item.fixed || item.size == Bytes{}) continue;
    if (!event.begins) {
      live.erase(*item.fixed);
      continue;
    }
    const auto clash = [&](const Item& other) {
      throw InputError{
          fmt::format("buffers {} and {}: both live at position {} and are fixed at [{}, {}) B and [{}, {}) B",
                      other.id, item.id, event.position, other.fixed->count(), (*other.fixed + other.size).count(),
                      item.fixed->count(), (*item.fixed + item.size).count())};
    };
    const auto above = live.lower_bound(*item.fixed);
    if (above != live.end() && *above->second->fixed < *item.fixed + item.size) clash(*above->second);
    if (above != live.begin())
      if (const Item& below = *std::prev(above)->second; *below.fixed + below.size > *item.fixed) clash(below);
    live.emplace(*item.fixed, &item);
  }
}

}  // namespace

Item& Instance::add(Bytes size, std::int64_t lower, std::int64_t upper) {
  const Interval life{lower, upper};
  return add(size, std::span{&life, 1});
}

Item& Instance::add(Bytes size, std::span<const Interval> lives) {
  Item& item = items.emplace_back();
  item.id = static_cast<std::uint32_t>(items.size() - 1);
  item.size = size;
  item.first = static_cast<std::uint32_t>(intervals.size());
  intervals.insert(intervals.end(), lives.begin(), lives.end());
  item.last = static_cast<std::uint32_t>(intervals.size());
  return item;
}

void check(const Instance& instance) {
  for (const Item& item : instance.items) check_item(instance, item);
  check_total(instance);
  check_fixed(instance);
}

std::vector<PackingEvent> events_of(const Instance& instance) {
  std::vector<PackingEvent> events;
  events.reserve(2 * instance.intervals.size());
  for (std::uint32_t i = 0; i < instance.items.size(); ++i)
    for (const Interval& life : instance.lives(instance.items[i])) {
      events.push_back({life.lower, i, true});
      events.push_back({life.upper, i, false});
    }
  std::sort(events.begin(), events.end());
  return events;
}

Bytes load_of(const Instance& instance) {
  Bytes live, most;
  for (const PackingEvent& event : events_of(instance)) {
    const Bytes size = instance.items[event.item].size;
    live += event.begins ? size : -size;
    most = std::max(most, live);
  }
  return most;
}

Instance lifetimes_of(const Trace& trace, std::uint16_t device, Bytes alignment) {
  Instance instance;
  const std::span<const Buffer> buffers = trace.buffers();
  std::vector<std::int64_t> births(buffers.size(), 0);
  const std::vector<std::int64_t> ends = stream_ends(trace, device);
  // Buffers from before the trace begin in front of the first event, since that event may end one.
  const std::int64_t shift = std::find(ends.begin(), ends.end(), 0) != ends.end() ? 1 : 0;
  std::int64_t position = shift;
  for (const BufferEvent event : buffer_events(trace, device)) {
    if (event.begins) births[event.buffer] = position;
    ++position;
  }
  for (std::uint32_t id = 0; id < buffers.size(); ++id) {
    if (buffers[id].device != device) continue;
    const Bytes size = std::max(round_up(buffers[id].size, alignment), alignment);
    Item& item = instance.add(size, births[id], ends[id] >= 0 ? ends[id] + shift : position + 1);
    item.alignment = alignment;
    item.id = id;
  }
  return instance;
}

}  // namespace tidepool
