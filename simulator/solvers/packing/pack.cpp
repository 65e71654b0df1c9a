#include "simulator/solvers/packing/pack.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <memory>
#include <vector>

#include "simulator/engine/planned_pool.hpp"
#include "simulator/solvers/packing/end_of_time.hpp"
#include "simulator/solvers/packing/recorded_device.hpp"
#include "traces/program_names.hpp"
#include "traces/step/buffer_events.hpp"

namespace tidepool {
namespace {

/// Buffers that exist before the trace come first.
std::vector<BufferEvent> all_events(const Trace& trace, std::uint16_t device) {
  std::vector<BufferEvent> events;
  for (std::uint32_t id = 0; id < trace.buffers().size(); ++id)
    if (trace.buffers()[id].device == device && trace.buffers()[id].born_before) events.push_back({id, true});
  const std::vector<BufferEvent> later = buffer_events(trace, device);
  events.insert(events.end(), later.begin(), later.end());
  return events;
}

Bytes load_of(const Trace& trace, const std::vector<BufferEvent>& events) {
  Bytes live, most;
  for (const BufferEvent& event : events) {
    const Bytes size = trace.buffers()[event.buffer].size;
    live += event.begins ? size : -size;
    most = std::max(most, live);
  }
  return most;
}

struct Extent {
  Bytes top;     ///< largest address in use
  Bytes placed;  ///< largest sum of places that are taken
};

/// @return  the index of the event that found no place or at which the time was over, or the number of events
std::size_t place_all(const Trace& trace, const std::vector<BufferEvent>& events, Pool& pool,
                      std::vector<Block>& places, Extent& extent, const EndOfTime& end) {
  Bytes placed;
  for (std::size_t i = 0; i < events.size(); ++i) {
    if (end.reached()) return i;
    const BufferEvent event = events[i];
    if (!event.begins) {
      pool.release(places[event.buffer]);
      placed -= places[event.buffer].size;
      continue;
    }
    const Buffer& buffer = trace.buffers()[event.buffer];
    const VersionId version = trace.first_version(BufferId{event.buffer});
    const std::optional<Block> block = pool.place({buffer.size, buffer.stream, version});
    if (!block) return i;
    places[event.buffer] = *block;
    placed += block->size;
    extent = {std::max(extent.top, block->offset + block->size), std::max(extent.placed, placed)};
  }
  return events.size();
}

std::string refusal(const Trace& trace, const BufferEvent& event, const Pool& pool) {
  const Buffer& buffer = trace.buffers()[event.buffer];
  return fmt::format("{} of {} B finds no place; the largest hole has {} B", buffer_text(trace, BufferId{event.buffer}),
                     buffer.size.count(), pool.largest_hole().count());
}

/// The alignment for a planner: the option's value, if it is not 0; else 1 B for a trace that was read from a list of
/// lifetimes, and trace_alignment() for any other trace.
Bytes planner_alignment(const Trace& trace, const Options& options) {
  const auto source = trace.data().meta.find("source");
  const bool exact = source != trace.data().meta.end() && source->second == "csv";
  return exact && options.bytes("alignment") == Bytes{} ? 1_B : trace_alignment(options);
}

Layout add_planned(Packing& packing, const Instance& instance, Planner& planner, const PackingLimits& limits) {
  check(instance);
  const auto begin = std::chrono::steady_clock::now();
  Layout layout = planner.plan(instance, limits);
  packing.wall += Nanos{std::chrono::nanoseconds{std::chrono::steady_clock::now() - begin}.count()};
  packing.events += static_cast<std::int64_t>(2 * instance.items.size());
  packing.load += load_of(instance);
  packing.lower_bound += layout.lower_bound;
  packing.height += verified_height(instance, layout.offsets);
  packing.proof = layout.proof;
  if (layout.outcome == Outcome::kOk || packing.outcome != Outcome::kOk) return layout;
  packing.outcome = layout.outcome;
  packing.message =
      fmt::format("the best layout found needs {} B, at least {} B are needed ({}); the capacity is {} B",
                  layout.height.count(), layout.lower_bound.count(), layout.proof, limits.capacity.count());
  return layout;
}

}  // namespace

double Packing::gap() const {
  if (lower_bound == Bytes{}) return height == Bytes{} ? 0 : std::numeric_limits<double>::infinity();
  return static_cast<double>(height.count()) / static_cast<double>(lower_bound.count()) - 1;
}

std::vector<Count> Packing::count_sums() const {
  std::vector<Count> sums;
  for (const std::vector<Count>& of_device : counts)
    for (const Count& count : of_device) {
      const auto known =
          std::find_if(sums.begin(), sums.end(), [&](const Count& other) { return other.name == count.name; });
      if (known == sums.end())
        sums.push_back(count);
      else
        known->value += count.value;
    }
  return sums;
}

Packing pack(const Trace& trace, const PoolInfo& info, const Options& options, const PackingLimits& limits,
             std::span<const Bytes> segments) {
  Packing packing;
  packing.addresses = info.has_addresses;
  packing.proof = "load";
  packing.buffers = static_cast<std::int64_t>(trace.buffers().size());
  std::vector<Block> places(trace.buffers().size());
  const std::uint32_t devices = device_count(trace);
  if (!info.plan) packing.counts.resize(devices);
  for (std::uint32_t device = 0; device < devices; ++device) {
    const auto which = static_cast<std::uint16_t>(device);
    if (info.plan) {
      const Bytes alignment = planner_alignment(trace, options);
      const Instance instance = lifetimes_of(trace, which, alignment);
      if (instance.items.empty()) continue;
      packing.layouts.push_back(
          layout_file(trace, which, alignment, add_planned(packing, instance, *info.plan(options), limits)));
      continue;
    }
    const std::vector<BufferEvent> events = all_events(trace, which);
    if (events.empty()) continue;
    const Bytes load = load_of(trace, events);
    packing.load += load;
    packing.lower_bound += load;
    RecordedDevice memory{limits.capacity, segments};
    const std::unique_ptr<Pool> pool = info.make(options);
    Extent extent;
    const EndOfTime end{limits};
    const auto begin = std::chrono::steady_clock::now();
    pool->start(trace, limits.capacity, memory);
    const std::size_t done = place_all(trace, events, *pool, places, extent, end);
    packing.wall += Nanos{std::chrono::nanoseconds{std::chrono::steady_clock::now() - begin}.count()};
    packing.events += static_cast<std::int64_t>(done);
    packing.counts[device] = pool->counts();
    const bool has_segments = memory.most_reserved() > Bytes{};
    packing.height += !info.has_addresses ? load : has_segments ? memory.most_reserved() : extent.top;
    packing.placed += extent.placed;
    if (done == events.size() || packing.outcome != Outcome::kOk) continue;
    if (end.reached()) {
      packing.outcome = Outcome::kTimeLimit;
      packing.message = fmt::format("{} of {} events within the time limit", done, events.size());
      continue;
    }
    packing.outcome = Outcome::kOutOfMemory;
    packing.message = refusal(trace, events[done], *pool);
  }
  return packing;
}

Packing pack(const Instance& instance, const PoolInfo& planner, const Options& options, const PackingLimits& limits) {
  Packing packing;
  packing.proof = "load";
  packing.buffers = static_cast<std::int64_t>(instance.items.size());
  packing.offsets = add_planned(packing, instance, *planner.plan(options), limits).offsets;
  return packing;
}

}  // namespace tidepool
