// tidepool optimum: the least time of all plans of a tiny step.
#include "simulator/solvers/optimum/optimum.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "simulator/plan_file.hpp"
#include "simulator/run.hpp"
#include "simulator/solvers/bounds/bound.hpp"
#include "simulator/solvers/optimum/steady.hpp"
#include "simulator/studies/commands/plan_freedom.hpp"
#include "simulator/studies/sweep/frontier.hpp"
#include "simulator/studies/sweep/grid.hpp"
#include "traces/base/command.hpp"
#include "traces/base/counted.hpp"
#include "traces/base/error.hpp"
#include "traces/base/json_text.hpp"
#include "traces/base/output.hpp"
#include "traces/base/say.hpp"
#include "traces/import/importer.hpp"

namespace tidepool {
namespace {

struct OptimumArguments {
  std::string trace, plan_out, alignment;
  std::string with = "swap,remat";
  GridText grid{.pool = "ideal", .policy = "none", .capacity = "", .first = true};
  std::int64_t states = 1'000'000;
  bool addresses = false, steady = false;
  bool json = false;
};

/// The result of the search, for one step or for the steady state.
struct Answer {
  bool exact = false, feasible = false;
  Nanos makespan;                 ///< in the steady state: mean time of an iteration of the cycle
  std::optional<Nanos> cycle;     ///< time of all iterations of the cycle
  std::int64_t iterations = 0;    ///< number of iterations in the cycle
  std::optional<Nanos> at_least;  ///< no plan is faster
  std::int64_t states = 0;
  Plan plan;
};

Answer answer(const OptimumQuery& query, bool steady) {
  if (steady) {
    SteadyOptimum found = find_steady_optimum(query);
    Answer answer{found.exact, found.feasible, found.mean(), found.cycle, found.iterations, {}, found.states, {}};
    answer.plan = std::move(found.plan);
    return answer;
  }
  Optimum found = find_optimum(query);
  Answer answer{found.exact, found.feasible, found.makespan, {}, 0, {}, found.states, std::move(found.plan)};
  if (!found.exact) answer.at_least = found.makespan;
  return answer;
}

void print_json(const OptimumArguments& arguments, const Trace& trace, const RunSpec& spec, const OptimumQuery& query,
                const Answer& found) {
  nlohmann::ordered_json object{{"trace", arguments.trace},     {"trace_hash", trace.hash()},
                                {"machine", spec.machine.name}, {"with", with_text(query.swap, query.remat)},
                                {"addresses", query.addresses}, {"steady", arguments.steady}};
  if (spec.capacity != kNoLimit) object["capacity_bytes"] = spec.capacity.count();
  object["feasible"] = found.feasible;
  object["baseline_ns"] = baseline_time(trace, spec.machine.launch).count();
  if (found.feasible) object["makespan_ns"] = found.makespan.count();
  if (found.feasible && found.cycle) {
    object["cycle_ns"] = found.cycle->count();
    object["cycle_iterations"] = found.iterations;
  }
  if (found.at_least) object["at_least_ns"] = found.at_least->count();
  object["plans_tried"] = found.states;
  object["exact"] = found.exact;
  fmt::print("{}\n", json_text(object));
}

void print_text(const Trace& trace, const RunSpec& spec, Bytes ideal_peak, const Answer& found) {
  const double free = static_cast<double>(baseline_time(trace, spec.machine.launch).count());
  const std::string capacity = spec.capacity == kNoLimit ? "no limit"
                                                         : fmt::format("{} ({} the peak)", to_text(spec.capacity),
                                                                       fraction_text(spec.capacity, ideal_peak));
  std::string text = found.exact ? "no plan exists" : "not known";
  if (found.feasible) text = to_text(found.makespan);
  if (found.feasible && free > 0)
    text += fmt::format(" ({:+.3f} %)", (static_cast<double>(found.makespan.count()) / free - 1) * 100);
  if (found.feasible && found.cycle) text += " in the mean of a cycle of " + counted(found.iterations, "iteration");
  if (found.at_least) text += fmt::format(": no plan is faster than {}", to_text(*found.at_least));
  if (found.feasible && !found.exact) text += "; a faster one may exist";
  fmt::print("{}, {}: {}; {}\n", spec.machine.name, capacity, text, counted(found.states, "partial plan"));
}

/// Whether the replay of an answer's plan takes the time of the answer. If not, prints both times.
bool replays(const Trace& trace, const RunSpec& spec, const Answer& found) {
  const Totals totals = replay(trace, spec, found.plan);
  Nanos time = totals.makespan;
  if (found.cycle) {
    const std::vector<Nanos> ends = iteration_ends(trace, spec.machine, spec.capacity, found.plan);
    time = ends.back() - ends[ends.size() - 1 - static_cast<std::size_t>(found.iterations)];
  }
  const Nanos expected = found.cycle.value_or(found.makespan);
  if (time == expected) return true;
  say("optimum: the plan replays in {} ns; expected {} ns\n", time.count(), expected.count());
  return false;
}

/// The number of which sizes and addresses are multiples.
Bytes alignment_of(const OptimumArguments& arguments) {
  if (arguments.alignment.empty()) return 1_B;
  if (!arguments.addresses) throw InputError{"--alignment: expected with --addresses"};
  const Bytes alignment = parse_bytes(arguments.alignment);
  if (alignment < 1_B) throw InputError{"--alignment: 0 B; expected at least 1 B"};
  return alignment;
}

int run_optimum(const OptimumArguments& arguments) {
  require_writable(arguments.plan_out);
  const Trace trace = load_for_runs(arguments.trace);
  const PlanFreedom freedom = parse_with(arguments.with);
  const Bytes alignment = alignment_of(arguments);
  const Grid grid{arguments.grid, trace};
  const bool keep_plan = !arguments.plan_out.empty();
  if (keep_plan && grid.size() != 1)
    throw InputError{fmt::format("--plan-out: the lists ask for {} runs; expected one", grid.size())};
  bool failed = false;
  for (std::size_t i = 0; i < grid.size(); ++i) {
    const RunSpec spec = grid.at(i);
    const OptimumQuery query{.trace = trace,
                             .machine = spec.machine,
                             .capacity = alignment * (spec.capacity / alignment),
                             .swap = freedom.swap,
                             .remat = freedom.remat,
                             .addresses = arguments.addresses,
                             .most_states = arguments.states,
                             .granule = alignment};
    const Answer found = answer(query, arguments.steady);
    if (arguments.json)
      print_json(arguments, trace, spec, query, found);
    else
      print_text(trace, spec, grid.ideal_peak(), found);
    const bool has_plan = !found.plan.actions.empty() || (found.feasible && trace.ops().empty());
    if (has_plan) failed |= !replays(trace, spec, found);
    if (!keep_plan) continue;
    if (has_plan) {
      RunSpec written = spec;
      if (arguments.addresses) written.pool = fmt::format("best-fit(alignment={}B)", alignment.count());
      written.iterations = static_cast<int>(std::count_if(found.plan.actions.begin(), found.plan.actions.end(),
                                                          [](const Action& a) { return a.verb == Verb::kNext; })) +
                           1;
      write_plan(arguments.plan_out, {trace.hash(), written, replay(trace, written, found.plan), found.plan});
    } else {
      say("{}: not written; no plan was found\n", arguments.plan_out);
      failed = true;
    }
  }
  return failed ? 1 : 0;
}

const RegisterCommand kOptimum{
    {.name = "optimum",
     .summary = "the least time of all plans of a tiny step; refuses larger ones",
     .declare = [](const CommandLine& app) {
       const auto arguments = std::make_shared<OptimumArguments>();
       app.add_option("trace", arguments->trace, "a trace, in any form that import reads").required();
       app.add_option("--capacity", arguments->grid.capacity,
                      "16GiB, 0.5x or 50% (of the trace's peak), 0.3x..1.0x/8, none (no limit) or machine (its memory)")
           .required();
       app.add_option("--machine", arguments->grid.machine, "NAME (tidepool machines lists them) or a machine file")
           .capture_default_str();
       app.add_option("--with", arguments->with, "what plans may do: swap, remat, swap,remat or none")
           .capture_default_str();
       app.add_flag("--addresses", arguments->addresses,
                    "buffers get address ranges and do not move; without it, only bytes are counted");
       app.add_option("--alignment", arguments->alignment,
                      "with --addresses: sizes and addresses are multiples of it (default 1B; devices need 256B)");
       app.add_flag("--steady", arguments->steady,
                    "the least mean time of an iteration when the step is repeated for ever");
       app.add_option("--states", arguments->states,
                      "the search gives up after so many partial plans, or after 200 comparisons for each")
           .capture_default_str();
       app.add_option("--plan-out", arguments->plan_out, "write the plan, for validate and export").type_name("FILE");
       app.add_flag("--json", arguments->json, "one JSON object for each capacity, on a line");
       return std::function<int()>{[arguments] { return run_optimum(*arguments); }};
     }}};

}  // namespace
}  // namespace tidepool
