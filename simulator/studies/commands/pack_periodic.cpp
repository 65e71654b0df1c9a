#include "simulator/studies/commands/pack_periodic.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "simulator/solvers/packing/pack_loop.hpp"
#include "simulator/solvers/packing/repeat.hpp"
#include "traces/base/error.hpp"
#include "traces/base/json_text.hpp"
#include "traces/base/numbers.hpp"
#include "traces/base/utf8.hpp"
#include "traces/import/importer.hpp"

namespace tidepool {
namespace {

struct PackedRow {
  std::string pool;
  LoopPacking result;
};

double over(Bytes bytes, Bytes base) {
  return base == Bytes{} ? 0 : static_cast<double>(bytes.count()) / static_cast<double>(base.count()) - 1;
}

/// The bytes of CnMem, with which the other pools are compared; none if CnMem is not in the list or does not fit.
std::optional<Bytes> baseline_of(const std::vector<PackedRow>& rows) {
  const auto found =
      std::find_if(rows.begin(), rows.end(), [](const PackedRow& row) { return row.pool.starts_with("cnmem"); });
  if (found == rows.end() || found->result.packing.outcome != Outcome::kOk) return {};
  return found->result.bytes;
}

nlohmann::ordered_json to_json(const SteadyLoop& loop) {
  return {{"first_event", loop.first},
          {"last_event", loop.last},
          {"events", loop.length},
          {"buffers", loop.arcs.size()},
          {"persistent", loop.persistent.size()},
          {"copies", loop.copies()}};
}

void print_json(const std::string& path, const Trace& trace, const std::vector<SteadyLoop>& loops,
                const std::vector<PackedRow>& rows) {
  const std::optional<Bytes> baseline = baseline_of(rows);
  for (const PackedRow& row : rows) {
    const LoopPacking& result = row.result;
    nlohmann::ordered_json object{{"trace", path},
                                  {"pool", row.pool},
                                  {"outcome", to_text(result.packing.outcome)},
                                  {"load_bytes", trace.ideal_peak().count()}};
    if (result.packing.outcome == Outcome::kOk) {
      object["bytes"] = result.bytes.count();
      object["count"] = to_text(result.count);
      object["over_load"] = over(result.bytes, trace.ideal_peak());
      if (baseline) object["against_cnmem"] = over(result.bytes, *baseline);
      object["height_bytes"] = result.packing.height.count();
      object["lower_bound_bytes"] = result.packing.lower_bound.count();
      object["proof"] = result.packing.proof;
      object["optimal"] = result.count == LoopCount::kPlanned && result.packing.optimal();
    } else {
      object["message"] = result.packing.message;
    }
    object["wall_ns"] = result.packing.wall.count();
    if (result.count == LoopCount::kPlanned)
      object["replay"] = {
          {"served", result.replay.served}, {"misses", result.replay.misses}, {"overlaps", result.replay.overlaps}};
    for (const SteadyLoop& loop : loops) object["loops"].push_back(to_json(loop));
    for (const Count& count : result.packing.count_sums()) object["counts"][std::string{count.name}] = count.value;
    fmt::print("{}\n", json_text(object));
  }
}

std::string remark(const LoopPacking& result) {
  if (result.packing.outcome != Outcome::kOk) return result.packing.message;
  switch (result.count) {
    case LoopCount::kPlanned:
      return fmt::format("planned, {}; serves {} allocs of the loop, {} misses, {} overlaps",
                         result.packing.optimal()
                             ? "optimal"
                             : fmt::format("{:+.3f} % above the lower bound", result.packing.gap() * 100),
                         grouped(result.replay.served), grouped(result.replay.misses), grouped(result.replay.overlaps));
    case LoopCount::kCounted:
      return fmt::format("as its authors count; {} B are reserved", grouped(result.packing.height.count()));
    case LoopCount::kReserved:
      break;
  }
  const std::string reserved = "reserved in the whole recording";
  if (!result.period) return reserved;
  if (*result.period == 0) return reserved + "; it finds no iteration";
  return fmt::format("{}; it finds {} events in an iteration", reserved, grouped(*result.period));
}

void print_text(const std::string& path, const Trace& trace, const std::vector<SteadyLoop>& loops,
                const std::vector<PackedRow>& rows) {
  fmt::print("{}: {} buffers, load {} B\n", printable(path), grouped(static_cast<std::int64_t>(trace.buffers().size())),
             grouped(trace.ideal_peak().count()));
  for (const SteadyLoop& loop : loops)
    if (loop.length > 0)
      fmt::print(
          "  loop: {} events an iteration, {:.1f} iterations from event {}; {} buffers each, {} stay; places "
          "repeat after {}\n",
          grouped(loop.length), static_cast<double>(loop.last - loop.first) / static_cast<double>(loop.length),
          grouped(loop.first), grouped(static_cast<std::int64_t>(loop.arcs.size())),
          grouped(static_cast<std::int64_t>(loop.persistent.size())), loop.copies());
  const std::optional<Bytes> baseline = baseline_of(rows);
  std::size_t width = 4;
  for (const PackedRow& row : rows) width = std::max(width, row.pool.size());
  fmt::print("  {:<{}}  {:>18}  {:>10}{}\n", "pool", width, "bytes", "over load", baseline ? "  against cnmem" : "");
  for (const PackedRow& row : rows) {
    const bool fits = row.result.packing.outcome == Outcome::kOk;
    const Bytes bytes = row.result.bytes;
    fmt::print(
        "  {:<{}}  {:>18}  {:>10}{}  {}\n", row.pool, width,
        fits ? grouped(bytes.count()) : std::string{to_text(row.result.packing.outcome)},
        fits ? fmt::format("{:+.3f} %", over(bytes, trace.ideal_peak()) * 100) : "",
        baseline ? fmt::format("  {:>13}", fits ? fmt::format("{:+.3f} %", over(bytes, *baseline) * 100) : "") : "",
        remark(row.result));
  }
}

}  // namespace

int pack_periodic(const PeriodicArguments& arguments) {
  struct Entry {
    std::string text;
    const PoolInfo* info;
    Options options;
  };
  std::vector<Entry> entries;
  for (const std::string& text : arguments.pools) {
    const Spec spec{text};
    const PoolInfo& info = find_pool(spec.name);
    entries.push_back({text, &info, Options{info.name, info.options, spec.options}});
  }
  bool served = true, claimed = false;
  for (const std::string& path : arguments.traces) {
    Trace trace = load_trace(path);
    if (arguments.iterations > 0) trace = repeat_lifetimes(trace, arguments.iterations);
    const std::vector<SteadyLoop> loops = find_loops(trace);
    std::vector<PackedRow> rows;
    for (const Entry& entry : entries) try {
        const std::span<const Bytes> segments{arguments.segments};
        rows.push_back({entry.text, pack_loop(trace, loops, *entry.info, entry.options, arguments.limits,
                                              entry.info->name == "cnmem" ? segments : segments.first(0))});
        const LoopReplay& replay = rows.back().result.replay;
        served = served && replay.misses == 0 && replay.overlaps == 0;
        claimed = claimed || entry.info->name == "smartpool";
      } catch (const InputError& error) {
        throw error.at(path);
      }
    claimed = claimed && baseline_of(rows).has_value();
    arguments.json ? print_json(path, trace, loops, rows) : print_text(path, trace, loops, rows);
  }
  if (claimed && !arguments.json)
    fmt::print("SmartPool's paper (arXiv 1903.06631) claims up to 13.3 % less than CnMem.\n");
  return served ? 0 : 1;
}

}  // namespace tidepool
