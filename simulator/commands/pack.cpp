// tidepool pack: how much memory do the lifetimes of a trace take under a pool?
#include "simulator/pack.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "simulator/grid.hpp"
#include "simulator/numbers.hpp"
#include "traces/command.hpp"
#include "traces/error.hpp"
#include "traces/importer.hpp"
#include "traces/input.hpp"

namespace tidepool {
namespace {

struct Arguments {
  std::string trace;
  std::string pools = "best-fit";
  std::string capacities = "none";
  std::string time_limit;
  std::string layout_out;
  bool json = false;
};

void print_json(const Packing& packing, const std::string& pool, Bytes capacity) {
  nlohmann::ordered_json object{{"buffers", packing.buffers},
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
  for (const Count& count : packing.counts) object["counts"][std::string{count.name}] = count.value;
  fmt::print("{}\n", object.dump());
}

void print_text(const Packing& packing, const std::string& pool) {
  const double seconds = static_cast<double>(packing.wall.count()) / 1e9;
  const std::string rate =
      seconds > 0 ? fmt::format(", {}/s", short_number(static_cast<double>(packing.events) / seconds)) : "";
  const std::string place =
      packing.outcome == Outcome::kOk && !packing.addresses
          ? fmt::format("the load, {}: it counts bytes and gives no places", to_text(packing.height))
      : packing.outcome == Outcome::kOk
          ? fmt::format("height {}, {:+.3f} % above the lower bound ({}){}", to_text(packing.height),
                        packing.gap() * 100, packing.proof, packing.optimal() ? ", optimal" : "")
          : fmt::format("{}: {}", to_text(packing.outcome), packing.message);
  fmt::print("{:<20}  {}; {} events in {}{}\n", pool, place, grouped(packing.events), to_text(packing.wall), rate);
  for (const Count& count : packing.counts) fmt::print("{:<20}  {} {}\n", "", grouped(count.value), count.name);
}

void write_layout(const std::string& path, const Packing& packing, const std::string& pool) {
  if (packing.layouts.size() != 1)
    throw InputError{fmt::format("--layout-out: {} made {} layouts; expected a planner and one device", pool,
                                 packing.layouts.size())};
  write_file(path, layout_text(packing.layouts.front()));
}

int run(const Arguments& arguments) {
  const Trace trace = load_trace(arguments.trace);
  std::vector<std::string> pools = split_list(arguments.pools);
  if (arguments.pools == "all") {
    pools.clear();
    for (const PoolInfo* info : all_pools()) pools.push_back(info->name);
  }
  bool first = true;
  for (const std::string& capacity_text : parse_capacities(arguments.capacities))
    for (const std::string& pool : pools) {
      const Spec spec = parse_spec(pool);
      const PoolInfo& info = find_pool(spec.name);
      const Bytes capacity = parse_capacity(capacity_text, trace.ideal_peak());
      PackingLimits limits{.capacity = capacity};
      if (!arguments.time_limit.empty()) limits.time = parse_nanos(arguments.time_limit);
      const Packing packing = pack(trace, info, Options{info.name, info.options, spec.options}, limits);
      if (!arguments.layout_out.empty()) write_layout(arguments.layout_out, packing, pool);
      if (arguments.json) {
        print_json(packing, pool, capacity);
        continue;
      }
      if (std::exchange(first, false))
        fmt::print("{}: {} buffers, load {}\n", arguments.trace, grouped(packing.buffers), to_text(packing.load));
      print_text(packing, pool);
    }
  return 0;
}

const RegisterCommand kRegistered{
    {.name = "pack", .summary = "place the lifetimes of a trace and nothing else", .declare = [](CLI::App& app) {
       const auto arguments = std::make_shared<Arguments>();
       app.add_option("trace", arguments->trace, "a trace or id,lower,upper,size, in any form that import reads")
           ->required();
       app.add_option("--pool", arguments->pools, "pools, as in best-fit,cnmem(init=1MiB), or all")
           ->capture_default_str();
       app.add_option("--capacity", arguments->capacities, "16GiB, 1.1x (of the load) or none; lists and ranges too")
           ->capture_default_str();
       app.add_option("--time-limit", arguments->time_limit,
                      "30s: how long a planner may search; without it, by its own option of effort");
       app.add_option(
           "--layout-out", arguments->layout_out,
           "writes the layout of the last planner in --pool; --pool 'layout(file=...)' serves another step by it");
       app.add_flag("--json", arguments->json, "one JSON object for each packing, on a line");
       return std::function<int()>{[arguments] { return run(*arguments); }};
     }}};

}  // namespace
}  // namespace tidepool
