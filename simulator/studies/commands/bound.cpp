// tidepool bound: lower bounds on the time of every plan at a capacity.
#include "simulator/solvers/bounds/bound.hpp"

#include <fmt/format.h>

#include <functional>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "simulator/engine/checker.hpp"
#include "simulator/options.hpp"
#include "simulator/run.hpp"
#include "simulator/studies/sweep/frontier.hpp"
#include "simulator/studies/sweep/grid.hpp"
#include "simulator/studies/text/interruptible.hpp"
#include "traces/base/command_line.hpp"
#include "traces/base/error.hpp"
#include "traces/base/refuse.hpp"
#include "traces/base/text.hpp"
#include "traces/import/importer.hpp"
#include "traces/one_device.hpp"

namespace tidepool {
namespace {

struct BoundArguments {
  std::string trace;
  std::string with = "swap,remat";
  GridText grid{.pool = "best-fit", .policy = "none", .capacity = "", .first = true};
  std::string iterations = "1";
  std::string time_limit;
  bool steady = false;
  bool json = false;
};

/// Actions that plans may take, apart from one run of each op of the program.
struct PlanFreedom {
  bool swap = false, remat = false, order = false;
};

/// Reads a list of "order", "swap" and "remat", or "none".
/// @throws InputError  "--with: 'offload' is no kind of action; expected some of order, swap and remat, ..."
PlanFreedom parse_with(const std::string& text) {
  PlanFreedom freedom;
  for (const std::string& word : split_list(text)) {
    if (word == "swap")
      freedom.swap = true;
    else if (word == "remat")
      freedom.remat = true;
    else if (word == "order")
      freedom.order = true;
    else if (text != "none")
      throw InputError{
          fmt::format("--with: '{}' is no kind of action; expected some of order, swap and remat, as in "
                      "order,swap, or none",
                      word)};
  }
  return freedom;
}

void print_json(const BoundArguments& arguments, const Trace& trace, Bytes ideal_peak, Bytes free_from,
                const BoundQuery& query, const std::vector<Bound>& bounds) {
  nlohmann::ordered_json object{{"trace", arguments.trace},
                                {"trace_hash", trace.hash()},
                                {"machine", query.machine.name},
                                {"assume", query.assume.name},
                                {"iterations", query.iterations},
                                {"steady", query.steady},
                                {"with", with_text(query.swap, query.remat, query.order)},
                                {"ideal_peak_bytes", ideal_peak.count()}};
  if (!query.order) object["free_from_bytes"] = free_from.count();
  if (query.capacity != kNoLimit) object["capacity_bytes"] = query.capacity.count();
  object["feasible"] = bounds.empty() || bounds.back().feasible;
  object["bounds"] = nlohmann::ordered_json::array();
  for (const Bound& bound : bounds) {
    nlohmann::ordered_json one{{"name", bound.name}, {"with", bound.with}};
    if (bound.feasible) one["makespan_ns"] = bound.makespan.count();
    one["limited_by"] = to_text(bound.limited_by);
    one["reruns"] = "any";  // no bound assumes a limit on reruns
    one["proof"] = bound.proof;
    object["bounds"].push_back(std::move(one));
  }
  if (const std::vector<std::string> names = bounds_without_limit(query); !names.empty()) object["left_out"] = names;
  fmt::print("{}\n", json_text(object));
}

void print_table(const BoundQuery& query, Bytes ideal_peak, Nanos free, const std::vector<Bound>& bounds) {
  if (query.capacity == kNoLimit)
    fmt::print("\nno limit\n");
  else
    fmt::print("\n{} ({} the peak)\n", to_text(query.capacity), fraction_text(query.capacity, ideal_peak));
  for (const Bound& bound : bounds) {
    std::string time = bound.feasible ? to_text(bound.makespan) : "infeasible";
    if (bound.feasible && free > Nanos{})
      time += fmt::format(" ({:+.3f} %)",
                          (static_cast<double>(bound.makespan.count()) / static_cast<double>(free.count()) - 1) * 100);
    fmt::print("  {:<16} {:<11} {:<24} {:<10} {}\n", bound.name, bound.with.empty() ? "none" : bound.with, time,
               to_text(bound.limited_by), bound.proof);
  }
  for (const std::string& name : bounds_without_limit(query))
    fmt::print("  {:<16} is left out for {} ops; --time-limit asks for it\n", name,
               grouped(static_cast<std::int64_t>(query.trace.ops().size())));
}

/// The bounds of one capacity after the other. While an object lives, an interruption prints those of the present
/// capacity that are known, and ends the program.
class KnownBounds {
 public:
  using Print = std::function<void(const std::vector<Bound>&)>;

  /// @param print  prints bounds, the best last
  std::vector<Bound> compute(const BoundQuery& query, Print print) {
    {
      const std::lock_guard lock{mutex_};
      known_.clear();
      print_ = std::move(print);
    }
    return compute_bounds(query, BoundEffort::kAll, [&](const Bound& bound) {
      const std::lock_guard lock{mutex_};
      known_.push_back(bound);
    });
  }
  /// Prints the bounds of the present capacity, all of which are known.
  void print(const std::vector<Bound>& bounds) {
    const std::lock_guard lock{mutex_};
    print_(bounds);
    known_.clear();
  }

 private:
  void end() {
    const std::lock_guard lock{mutex_};
    if (!known_.empty()) print_(best_last(known_));
    say("interrupted: {}\n",
        known_.empty() ? "no further bound is known" : "these bounds hold; there may be better ones");
  }

  Interruptible interruptible_;
  std::mutex mutex_;
  std::vector<Bound> known_;
  Print print_;
  EndsAtOnce ends_{[this] { end(); }};
};

int run_bound(const BoundArguments& arguments) {
  const Trace trace = load_for_runs(arguments.trace);
  const PlanFreedom freedom = parse_with(arguments.with);
  if (freedom.swap || freedom.remat || freedom.order)
    naming(arguments.trace, [&] { require_uses(trace, "a bound would hold for plans that cannot be carried out"); });
  const Grid grid{arguments.grid, trace};
  const int iterations = parse_iterations(arguments.iterations);
  std::optional<Nanos> time_limit;
  if (!arguments.time_limit.empty())
    time_limit = naming("--time-limit", [&] { return parse_nanos(arguments.time_limit); });
  KnownBounds known;
  std::optional<Machine> machine;
  Nanos free, first_free;  // times of the step without policy and limit, on this machine and on the first one
  Bytes free_from;
  for (std::size_t i = 0; i < grid.size(); ++i) {
    const RunSpec spec = grid.at(i);
    const BoundQuery query{trace,       spec.machine, spec.capacity,    freedom.swap,  freedom.remat,
                           spec.assume, iterations,   arguments.steady, freedom.order, time_limit};
    const bool new_machine = machine != spec.machine;
    if (new_machine) free = baseline_time(trace, spec.machine.launch);
    if (i == 0) first_free = free;
    machine = spec.machine;
    if (arguments.json) {
      if (new_machine && !freedom.order) free_from = least_free_capacity(query);
      const auto print = [&](const std::vector<Bound>& bounds) {
        print_json(arguments, trace, grid.ideal_peak(), free_from, query, bounds);
      };
      known.print(known.compute(query, print));
      continue;
    }
    if (i == 0)
      fmt::print("{}: lower bounds on plans {}{}, the best last; the step takes {} without any limit, peak {}\n",
                 printable(arguments.trace),
                 freedom.swap || freedom.remat || freedom.order ? fmt::format("with {}", arguments.with)
                                                                : "that keep everything",
                 arguments.steady ? " on the average of many iterations" : "", to_text(free),
                 to_text(grid.ideal_peak()));
    if (new_machine && free != first_free)
      fmt::print("{}: the step takes {} without any limit\n", machine->name, to_text(free));
    const auto print = [&](const std::vector<Bound>& bounds) { print_table(query, grid.ideal_peak(), free, bounds); };
    const std::vector<Bound> bounds = known.compute(query, print);
    if (new_machine && !freedom.order) {
      free_from = least_free_capacity(query);
      fmt::print("{}: free of overhead in no less than {} ({} the peak)\n", machine->name, to_text(free_from),
                 fraction_text(free_from, grid.ideal_peak()));
    }
    known.print(bounds);
  }
  if (!arguments.json && grid.size() > 0 && rerun_rules(grid.at(0).assume) != RerunRules{})
    fmt::print("\neach bound holds for any number of reruns, also for more than {} allows\n", grid.at(0).assume.name);
  return 0;
}

const RegisterCommand kBound{
    {.name = "bound",
     .summary = "certified lower bounds: times that no plan can beat, and capacities that no plan can run in",
     .seldom = {"--assume", "--iterations"},
     .declare = [](const CommandLine& app) {
       const auto arguments = std::make_shared<BoundArguments>();
       app.add_option("trace", arguments->trace, "a trace, in any form that import reads").required();
       app.add_option("--capacity", arguments->grid.capacity,
                      "16GiB, 0.5x or 50% (of the trace's peak), 0.3x..1.0x/8, none (no limit) or machine (its memory)")
           .required();
       app.add_option("--machine", arguments->grid.machine, "NAME (tidepool machines lists them) or a machine file")
           .capture_default_str();
       app.add_option("--with", arguments->with,
                      "what plans may do: some of order, swap and remat, as in swap,remat, or none")
           .capture_default_str();
       app.add_option("--assume", arguments->grid.assume,
                      "what one paper's own simulator assumed: checkmate, moccasin or simrd");
       app.add_option("--iterations", arguments->iterations, "the step is run this often; bounds are on the last")
           .capture_default_str();
       app.add_flag("--steady", arguments->steady,
                    "bound the mean time of an iteration when the step is repeated for ever");
       app.add_option("--time-limit", arguments->time_limit,
                      "of each bound that is a linear program; without it, they are left out for more than 5,000 ops");
       app.add_flag("--json", arguments->json, "one JSON object for each capacity, on a line");
       return std::function<int()>{[arguments, app] {
         if (arguments->steady && app.count("--iterations") > 0)
           throw InputError{"--steady: expected without --iterations"};
         return run_bound(*arguments);
       }};
     }}};

}  // namespace
}  // namespace tidepool
