#include "simulator/solvers/packing/pack_loop.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "simulator/engine/planned_pool.hpp"
#include "traces/base/error.hpp"
#include "traces/step/buffer_events.hpp"

namespace tidepool {
namespace {

void require_loop(const SteadyLoop& loop) {
  if (loop.length == 0)
    throw InputError{"no iteration repeats; expected a recording of several iterations, or --iterations"};
  if (!loop.found())
    throw InputError{fmt::format(
        "buffer {} is allocated in every iteration and not freed within the {} events that repeat; expected "
        "a loop that frees what it allocates, or a longer recording",
        loop.left_behind.front(), loop.last - loop.first)};
}

void add(Packing& sum, Packing part) {
  sum.buffers += part.buffers;
  sum.events += part.events;
  sum.load += part.load;
  sum.height += part.height;
  sum.lower_bound += part.lower_bound;
  sum.wall += part.wall;
  sum.proof = std::move(part.proof);
  if (sum.outcome != Outcome::kOk || part.outcome == Outcome::kOk) return;
  sum.outcome = part.outcome;
  sum.message = std::move(part.message);
}

std::optional<std::int64_t> count_named(const std::vector<Count>& counts, std::string_view name) {
  for (const Count& count : counts)
    if (count.name == name) return count.value;
  return {};
}

/// Whether a pool found an iteration on each device with buffers, as long as that of the device's loop.
bool finds_loops(const Packing& packing, std::span<const SteadyLoop> loops) {
  for (std::size_t device = 0; device < loops.size(); ++device) {
    const std::vector<Count>& counts = packing.counts[device];
    if (!counts.empty() && (loops[device].length == 0 || count_named(counts, "period_events") != loops[device].length))
      return false;
  }
  return true;
}

}  // namespace

std::string_view to_text(LoopCount count) {
  switch (count) {
    case LoopCount::kPlanned:
      return "planned";
    case LoopCount::kCounted:
      return "counted";
    case LoopCount::kReserved:
      break;
  }
  return "reserved";
}

std::vector<SteadyLoop> find_loops(const Trace& trace) {
  std::vector<SteadyLoop> loops;
  for (std::uint32_t device = 0, devices = device_count(trace); device < devices; ++device)
    loops.push_back(find_loop(trace, static_cast<std::uint16_t>(device)));
  return loops;
}

LoopPacking pack_loop(const Trace& trace, std::span<const SteadyLoop> loops, const PoolInfo& pool,
                      const Options& options, const PackingLimits& limits, std::span<const Bytes> segments) {
  LoopPacking result;
  if (!pool.plan) {
    result.packing = pack(trace, pool, options, limits, segments);
    result.bytes = result.packing.height;
    const std::vector<Count> sums = result.packing.count_sums();
    result.period = count_named(sums, "period_events");
    if (!result.period || !finds_loops(result.packing, loops)) return result;
    result.bytes = Bytes{count_named(sums, "counted_bytes").value_or(0)};
    result.count = LoopCount::kCounted;
    return result;
  }
  result.count = LoopCount::kPlanned;
  for (std::size_t device = 0; device < loops.size(); ++device) {
    const auto which = static_cast<std::uint16_t>(device);
    if (std::none_of(trace.buffers().begin(), trace.buffers().end(),
                     [&](const Buffer& buffer) { return buffer.device == which; }))
      continue;
    require_loop(loops[device]);
    const Instance instance = on_circle(loops[device], trace, trace_alignment(options));
    Packing part = pack(instance, pool, options, limits);
    const LoopReplay replay = replay_loop(trace, which, loops[device], instance, part.offsets);
    result.replay.served += replay.served;
    result.replay.misses += replay.misses;
    result.replay.overlaps += replay.overlaps;
    add(result.packing, std::move(part));
  }
  result.bytes = result.packing.height;
  return result;
}

}  // namespace tidepool
