// tidepool autoswap: the overhead that AutoSwap's authors predict for their plans, beside the stall in a strict
// simulation and a lower bound of it.
#include <fmt/format.h>

#include <array>
#include <memory>
#include <nlohmann/json.hpp>

#include "policies/planning/gaps/published_autoswap.hpp"
#include "simulator/bounds/bound.hpp"
#include "simulator/machine/capacity.hpp"
#include "simulator/run.hpp"
#include "simulator/sweep/grid.hpp"
#include "traces/command.hpp"
#include "traces/error.hpp"
#include "traces/import/importer.hpp"
#include "traces/iteration.hpp"
#include "traces/json_text.hpp"

namespace tidepool {
namespace {

struct AutoswapArguments {
  std::string events, loads, capacity = "240MiB..400MiB/9", machine = "titan-x-pcie3", pool = "ideal";
  bool json = false;
};

struct Column {
  std::string name, policy;
  GapScore score;
};

constexpr int kIterations = 5;  // the last one stands for the steady state

/// The stall of the last of kIterations iterations; none if the run fails.
std::optional<Nanos> stall(const Trace& step, const AutoswapArguments& arguments, const Machine& machine,
                           const std::string& policy, Bytes capacity) {
  const RunSpec spec{
      .pool = arguments.pool, .policy = policy, .capacity = capacity, .machine = machine, .iterations = kIterations};
  const Result result = simulate(step, spec);
  if (result.outcome != Outcome::kOk) return {};
  return result.totals.stall.compute;
}

/// A lower bound of the stall of an iteration in the steady state; 0 if no bound is known, none if no plan exists.
std::optional<Nanos> least_stall(const Trace& step, const Machine& machine, Bytes capacity, Nanos baseline) {
  const BoundQuery query{.trace = step, .machine = machine, .capacity = capacity, .swap = true, .steady = true};
  const std::optional<Bound> bound = best_bound(query, BoundEffort::kAll);
  if (!bound) return Nanos{};
  if (!bound->feasible) return {};
  return std::max(bound->makespan - baseline, Nanos{});
}

std::string milliseconds(std::optional<double> ns) { return ns ? fmt::format("{:.3f}", *ns / 1e6) : "none"; }
std::optional<double> number(std::optional<Nanos> time) {
  return time ? std::optional{static_cast<double>(time->count())} : std::nullopt;
}

int run_autoswap(const AutoswapArguments& arguments) {
  const std::array<Column, 4> columns{Column{"doa", "autoswap(score=doa)", GapScore::kDoa},
                                      Column{"aoa", "autoswap(score=aoa)", GapScore::kAoa},
                                      Column{"wdoa", "autoswap(score=wdoa)", GapScore::kWdoa},
                                      Column{"swdoa", "autoswap(score=swdoa)", GapScore::kSwdoa}};
  const Machine machine = find_machine(arguments.machine);
  const BlockLog log = read_block_log(read_input(arguments.events), read_input(arguments.loads));
  const Trace step = one_iteration(load_trace(arguments.events, "singa"), 1);
  Nanos baseline;
  for (const Op& op : step.ops()) baseline += op.duration;
  std::vector<Bytes> limits;
  std::vector<double> plain;
  for (const std::string& text : parse_capacities(arguments.capacity)) {
    limits.push_back(text == "machine" ? machine.capacity : parse_capacity(text, step.ideal_peak()));
    plain.push_back(static_cast<double>(limits.back().count()));
  }
  std::array<std::vector<double>, 4> predicted;
  for (std::size_t c = 0; c < columns.size(); ++c) predicted[c] = published_overheads(log, columns[c].score, plain);
  if (!arguments.json)
    fmt::print(
        "ms lost in an iteration of {}: predicted by the authors (DOA AOA WDOA SWDOA), simulated with Tidepool's "
        "schedule, and a bound\n{:>10} | {:>7} {:>7} {:>7} {:>7} | {:>7} {:>7} {:>7} {:>7} {:>7} | {:>7}\n",
        to_text(baseline), "limit", "doa", "aoa", "wdoa", "swdoa", "doa", "aoa", "wdoa", "swdoa", "tide", "bound");
  for (std::size_t i = 0; i < limits.size(); ++i) {
    nlohmann::json row{{"capacity_bytes", limits[i].count()}, {"baseline_ns", baseline.count()}};
    std::string line = fmt::format("{:>10} |", to_text(limits[i]));
    for (std::size_t c = 0; c < columns.size(); ++c) {
      row["predicted_ns"][columns[c].name] = predicted[c][i];
      line += fmt::format(" {:>7}", milliseconds(predicted[c][i]));
    }
    line += " |";
    const auto add = [&](const std::string& key, const std::string& name, std::optional<Nanos> time) {
      nlohmann::json& cell = key.empty() ? row[name] : row[key][name];
      if (time)
        cell = time->count();
      else
        cell = nullptr;
      line += fmt::format(" {:>7}", milliseconds(number(time)));
    };
    for (const Column& column : columns)
      add("stall_ns", column.name, stall(step, arguments, machine, column.policy, limits[i]));
    add("stall_ns", "tide", stall(step, arguments, machine, "tide(with=swap)", limits[i]));
    line += " |";
    add("", "bound_ns", least_stall(step, machine, limits[i], baseline));
    fmt::print("{}\n", arguments.json ? json_text(row) : line);
  }
  return 0;
}

const RegisterCommand kAutoswap{
    {.name = "autoswap",
     .summary = "AutoSwap's published predictions beside strict simulations, Tidepool's planner and a bound",
     .declare = [](const CommandLine& app) {
       const auto arguments = std::make_shared<AutoswapArguments>();
       app.add_option("events", arguments->events, "three iterations of block events, as vec_block_fresh_vgg.csv")
           .required();
       app.add_option("loads", arguments->loads, "the load behind each event, as load_origin_vgg.csv").required();
       app.add_option("--capacity", arguments->capacity,
                      "one limit, as 280MiB, or a range with a number of limits, as 240MiB..400MiB/9")
           .capture_default_str();
       app.add_option("--machine", arguments->machine, "for the simulations; the predictions have their own link")
           .capture_default_str();
       app.add_option("--pool", arguments->pool, "for the simulations").capture_default_str();
       app.add_flag("--json", arguments->json, "one JSON object for each limit, on a line");
       return std::function<int()>{[arguments] { return run_autoswap(*arguments); }};
     }}};

}  // namespace
}  // namespace tidepool
