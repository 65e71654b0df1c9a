// tidepool pack: the memory that the lifetimes of a trace take under a pool.
#include "simulator/solvers/packing/pack.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "simulator/engine/machine/machine_file.hpp"
#include "simulator/planner.hpp"
#include "simulator/solvers/packing/lifetimes.hpp"
#include "simulator/solvers/packing/pack_loop.hpp"
#include "simulator/studies/audit/audit.hpp"
#include "simulator/studies/sweep/grid.hpp"
#include "simulator/studies/text/interruptible.hpp"
#include "traces/base/command_line.hpp"
#include "traces/base/error.hpp"
#include "traces/base/input.hpp"
#include "traces/base/lines.hpp"
#include "traces/base/output.hpp"
#include "traces/base/refuse.hpp"
#include "traces/base/text.hpp"
#include "traces/import/importer.hpp"

namespace tidepool {

namespace {

/// pack --periodic: pools and planners side by side on training loops.
struct PeriodicArguments {
  std::vector<std::string> traces;
  std::vector<std::string> pools;
  PackingLimits limits;
  int iterations = 0;           ///< 0: as recorded
  std::vector<Bytes> segments;  ///< addresses of the segments that the device gave to cnmem, if they are known
  bool json = false;
};

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

/// @return the exit code: 1 if a planned layout did not serve the loop that it was planned for
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

struct PackArguments {
  std::vector<std::string> traces;
  std::string pools = "best-fit";
  std::string capacities = "none";
  std::string time_limit;
  std::string layout_out;
  std::string segments;
  int iterations = 0;
  bool periodic = false;
  bool json = false;
};

/// The input to pack: a trace, a table of lifetimes, or a table that was also read as a trace.
struct PackedJob {
  std::optional<Trace> trace;
  std::optional<LifetimeTable> table;
  Bytes load;
};

PackedJob load_instance(const std::string& path, int iterations) {
  PackedJob job;
  if (std::error_code error; std::filesystem::is_directory(path, error)) {
    job.trace = load_trace(path);
  } else {
    const Input input = read_trace_input(path);
    if (find_importer(input, "auto").name == "csv" && iterations == 0) {
      job.table = read_lifetimes(input, LifetimeColumns::kAll);
      const Instance instance = instance_of(*job.table, 1_B);
      naming(path, [&] { check(instance); });
      job.load = load_of(instance);
      if (job.table->constrained) return job;
    }
    job.trace = load_trace(input);
  }
  if (iterations > 0) job.trace = repeat_lifetimes(*job.trace, iterations);
  if (!job.table) job.load = job.trace->ideal_peak();
  return job;
}

/// Packs a job. Planners get a table as a table, even if it was also read as a trace: only the table has the lengths of
/// the lifetimes. If a layout is wanted, they get the trace, since only its packing has layouts.
Packing pack_job(const PackedJob& job, const PoolInfo& info, const Options& options, const PackingLimits& limits,
                 std::span<const Bytes> segments, bool want_layout) {
  const bool as_table = job.table && info.plan && !(want_layout && job.trace);
  if (!as_table && !job.trace)
    throw InputError{
        fmt::format("pool '{}' decides as requests come and knows no gaps, alignments and offsets beforehand; expected "
                    "an offline planner for such a table (tidepool policies lists them)",
                    info.name)};
  if (!as_table) return pack(*job.trace, info, options, limits, segments);
  const Bytes alignment = options.bytes("alignment");
  return pack(instance_of(*job.table, alignment == Bytes{} ? 1_B : alignment), info, options, limits);
}

void print_json(const std::string& path, const Packing& packing, const std::string& pool, Bytes capacity) {
  nlohmann::ordered_json object{{"trace", path},
                                {"buffers", packing.buffers},
                                {"load_bytes", packing.load.count()},
                                {"height_bytes", packing.height.count()},
                                {"lower_bound_bytes", packing.lower_bound.count()},
                                {"gap", packing.gap()},
                                {"optimal", packing.optimal()},
                                {"proof", packing.proof},
                                {"outcome", to_text(packing.outcome)},
                                {"wall_ns", packing.wall.count()},
                                {"pool", pool},
                                {"addresses", packing.addresses}};
  if (packing.outcome != Outcome::kOk) {
    object.erase("height_bytes");
    object.erase("gap");
    object["message"] = packing.message;
  }
  if (capacity != kNoLimit) object["capacity_bytes"] = capacity.count();
  for (const Count& count : packing.count_sums()) object["counts"][std::string{count.name}] = count.value;
  fmt::print("{}\n", json_text(object));
}

void print_text(const Packing& packing, const std::string& pool) {
  const double seconds = static_cast<double>(packing.wall.count()) / 1e9;
  const std::string rate =
      seconds > 0 ? fmt::format(", {}/s", short_number(static_cast<double>(packing.events) / seconds)) : "";
  const std::string place =
      packing.outcome == Outcome::kOk && !packing.addresses
          ? fmt::format("the load, {}: it counts bytes and gives no addresses", to_text(packing.height))
      : packing.outcome == Outcome::kOk
          ? fmt::format("height {}, {:+.3f} % above the lower bound ({}){}", to_text(packing.height),
                        packing.gap() * 100, packing.proof, packing.optimal() ? ", optimal" : "")
          : fmt::format("{}: {}", to_text(packing.outcome), packing.message);
  fmt::print("{:<20}  {}; {} in {}{}\n", pool, place, counted(packing.events, "event"), to_text(packing.wall), rate);
  for (const Count& count : packing.count_sums()) fmt::print("{:<20}  {} {}\n", "", grouped(count.value), count.name);
}

void write_layout(const std::string& path, const Packing& packing, const std::string& pool) {
  if (packing.layouts.size() != 1)
    throw InputError{fmt::format("--layout-out: {} made {} layouts; expected a planner and one device", pool,
                                 packing.layouts.size())};
  write_file(path, layout_text(packing.layouts.front()));
}

/// In how many bytes the program that the trace comes from placed its buffers, if the trace says it.
std::string placed(const PackedJob& job) {
  if (!job.trace) return "";
  const std::map<std::string, std::string>& meta = job.trace->data().meta;
  const auto bytes = meta.find("placed_bytes"), by = meta.find("placed_by");
  const std::optional<std::int64_t> count = bytes == meta.end() ? std::nullopt : parse_whole(bytes->second);
  return count && by != meta.end()
             ? fmt::format("; {} placed them in {}", printable(by->second), to_text(Bytes{*count}))
             : "";
}

void pack_file(const std::string& path, const PackArguments& arguments, const std::vector<std::string>& pools,
               std::span<const Bytes> segments) {
  const PackedJob job = load_instance(path, arguments.iterations);
  bool first = true;
  for (const std::string& capacity_text : parse_capacities(arguments.capacities))
    for (const std::string& pool : pools) {
      const Spec spec{pool};
      const PoolInfo& info = find_pool(spec.name);
      const Bytes capacity = parse_capacity(capacity_text, job.load);
      PackingLimits limits{.capacity = capacity};
      if (!arguments.time_limit.empty()) limits.time = parse_nanos(arguments.time_limit);
      const Packing packing =
          pack_job(job, info, Options{info.name, info.options, spec.options}, limits,
                   info.name == "cnmem" ? segments : std::span<const Bytes>{}, !arguments.layout_out.empty());
      if (!arguments.layout_out.empty()) write_layout(arguments.layout_out, packing, pool);
      if (arguments.json) {
        print_json(path, packing, pool, capacity);
        continue;
      }
      if (std::exchange(first, false))
        fmt::print("{}: {}, load {}{}\n", printable(path), counted(packing.buffers, "buffer"), to_text(packing.load),
                   placed(job));
      print_text(packing, pool);
    }
}

int run_pack(const PackArguments& arguments) {
  if (arguments.periodic && arguments.capacities != "none")
    refuse("--capacity: expected it without --periodic, which finds what the loop needs");
  if (arguments.periodic && !arguments.layout_out.empty())
    refuse("--layout-out: expected it without --periodic: a layout has the places of one step");
  require_writable(arguments.layout_out);
  const Interruptible interruptible;
  const EndsAtOnce ends{[] { say("pack: interrupted; with --time-limit, the best place until then is an answer\n"); }};
  std::vector<std::string> pools = split_list(arguments.pools);
  if (arguments.pools == "all") {
    pools.clear();
    for (const PoolInfo* info : all_pools()) pools.push_back(info->name);
  }
  std::vector<Bytes> segments;
  if (!arguments.segments.empty())
    for (const LoggedSegment& segment : parse_segments(arguments.segments, read_input(arguments.segments).bytes()))
      segments.push_back(segment.address);
  if (arguments.periodic) {
    PeriodicArguments periodic{arguments.traces, pools, {}, arguments.iterations, segments, arguments.json};
    if (!arguments.time_limit.empty()) periodic.limits.time = parse_nanos(arguments.time_limit);
    return pack_periodic(periodic);
  }
  for (const std::string& path : arguments.traces) pack_file(path, arguments, pools, segments);
  return 0;
}

const RegisterCommand kPack{
    {.name = "pack",
     .summary = "place the lifetimes of a trace and nothing else",
     .seldom = {"--iterations", "--periodic", "--segments"},
     .declare = [](const CommandLine& app) {
       const auto arguments = std::make_shared<PackArguments>();
       app.add_option("trace", arguments->traces,
                      "traces in any form that import reads, or tables with the columns id,lower,upper,size and, for "
                      "planners, alignment, offset (fixed), gaps (3-5 8-9) and hint (ignored)")
           .required();
       app.add_option("--pool", arguments->pools, "pools, as in best-fit,cnmem(init=1MiB), or all")
           .capture_default_str();
       app.add_option("--capacity", arguments->capacities, "16GiB, 1.1x (of the load) or none; lists and ranges too")
           .capture_default_str();
       app.add_option("--time-limit", arguments->time_limit,
                      "30s: how long a planner may search; without it, the planner's option effort limits the search");
       app.add_option(
           "--layout-out", arguments->layout_out,
           "writes the planner's layout; with several planners, that of the last one; --pool may name planners only. "
           "--pool 'layout(file=...)' serves another step by it");
       app.add_option(
              "--iterations", arguments->iterations,
              "packs the lifetimes of this many iterations of the step; buffers that exist both before and after the "
              "step stay")
           .positive();
       app.add_flag("--periodic", arguments->periodic,
                    "finds the loop in a recording of several iterations; planners place one iteration on a circle, so "
                    "that the places serve all; pools serve the whole recording");
       app.add_option("--segments", arguments->segments,
                      "a file with the address and the MiB of each segment that the device handed out to cnmem, where "
                      "they are known");
       app.add_flag("--json", arguments->json, "one JSON object for each packing, on a line");
       return std::function<int()>{[arguments] { return run_pack(*arguments); }};
     }}};

}  // namespace

}  // namespace tidepool
