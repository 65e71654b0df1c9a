// tidepool simulate: one run with all details, or several runs one after the other.
#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "simulator/engine/decisions/decision.hpp"
#include "simulator/engine/iteration_watch.hpp"
#include "simulator/ordered_step.hpp"
#include "simulator/plan_file.hpp"
#include "simulator/registry.hpp"
#include "simulator/solvers/bounds/bound.hpp"
#include "simulator/studies/commands/simulate_job.hpp"
#include "simulator/studies/report/history.hpp"
#include "simulator/studies/report/view.hpp"
#include "simulator/studies/sweep/grid.hpp"
#include "simulator/studies/sweep/result_row.hpp"
#include "simulator/studies/text/interruptible.hpp"
#include "simulator/studies/text/terminal.hpp"
#include "traces/base/command_line.hpp"
#include "traces/base/error.hpp"
#include "traces/base/output.hpp"
#include "traces/base/refuse.hpp"
#include "traces/base/text.hpp"
#include "traces/import/importer.hpp"
#include "traces/summary.hpp"

namespace tidepool {

namespace {

/// The options of a picture.
struct ViewText {
  bool view = false, map = false;
  std::optional<std::uint64_t> at;
};

/// A map of the addresses when op `at` begins. Without `at`: when the run ran out of memory, or else at its peak.
/// @throws InputError  "--at: '12' is no op of the trace; expected a number from 0 to 8"
std::string map_text(const PlannedStep& step, const History& history, const RunSpec& spec, const Result& result,
                     std::optional<std::uint64_t> at, const ViewOptions& options) {
  const Trace& trace = step.trace();
  const auto map = [&](std::string_view when, Nanos moment) {
    return fmt::format("addresses {}; {}", when, address_map_text(trace, history, spec, moment, options));
  };
  const auto name = [&](OpId op) { return fmt::format("op {} ({})", op.value(), trace.text(trace.op(op).name)); };
  if (at) {
    if (trace.ops().empty()) refuse("--at: the trace has no ops; expected --map without it");
    if (*at >= trace.ops().size())
      refuse("--at: '{}' is no op of the trace; expected a number from 0 to {}", *at, trace.ops().size() - 1);
    const std::optional<Nanos> moment = begin_of(history, OpId{*at});
    if (!moment) refuse("--at: op {} does not run; expected one of the ops before it", *at);
    return map(fmt::format("when {} begins", name(OpId{*at})), *moment);
  }
  if (result.outcome == Outcome::kOutOfMemory) return map("when a request finds no place", history.end);
  return map("at the peak", peak_moment(history));
}

/// Runs one step and prints its picture.
/// @return  the exit code
/// @throws InputError  "the lists ask for 2 runs; expected one"
int show_run(const std::string& path, const GridText& text, const ViewText& view) {
  if (view.at && !view.map) refuse("--at: applies to --map, which is not given; expected both");
  const Trace trace = load_for_runs(path);
  const Grid grid{text, trace};
  if (grid.size() != 1) throw InputError{fmt::format("the lists ask for {} runs; expected one", grid.size())};
  const RunSpec spec = grid.at(0);
  const Result result = try_simulate(trace, spec, true);
  const SpecNames names = names_of(spec);
  const std::string limit = spec.capacity == kNoLimit ? "no limit" : to_text(spec.capacity);
  fmt::print("{}: {} on {}, {}, {}: {}\n", printable(path), names.policy, names.pool, spec.machine.name, limit,
             to_text(result.outcome));
  if (!result.message.empty()) fmt::print("{}\n", result.message);
  if (result.outcome == Outcome::kError) return 1;
  if (spec.steady && result.outcome == Outcome::kOk)
    fmt::print("{} of {} after {}; the step takes {}\n", result.cycle.settled ? "a cycle" : "the last",
               counted(result.cycle.iterations, "iteration"), result.cycle.lead_in, to_text(result.totals.makespan));
  const PlannedStep step{trace, result.realised};
  const History history = last_iterations(history_of(step.trace(), spec, result.realised), result.cycle.iterations);
  const ViewOptions options{.width = terminal_width(), .colour = colour_wanted(), .utf8 = locale_is_utf8()};
  fmt::print("\n{}", view.map ? map_text(step, history, spec, result, view.at, options)
                              : view_text(step.trace(), history, spec.capacity, options));
  for (const std::string& line : warnings(trace)) say("{}: {}\n", path, line);
  return 0;
}

struct SimulateArguments {
  std::string trace, plan_out;
  GridText grid;
  JobText job;
  ViewText view;
  bool decisions = false, json = false;
};

std::string capacity_text(const RunSpec& spec, Bytes ideal_peak) {
  if (spec.capacity == kNoLimit) return "no limit";
  if (ideal_peak == Bytes{}) return to_text(spec.capacity);
  return fmt::format("{} ({:.3g}x the peak)", to_text(spec.capacity),
                     static_cast<double>(spec.capacity.count()) / static_cast<double>(ideal_peak.count()));
}

void print_memory(const Row& row, const RunSpec& spec, Bytes ideal_peak, const Result& result) {
  const Totals& totals = result.totals;
  if (std::get<bool>(at(row, "addresses"))) {
    const auto* fragmentation = std::get_if<double>(&at(row, "fragmentation"));
    fmt::print("memory      peak {}, footprint {}, fragmentation {:.1f} %\n", to_text(totals.peak),
               to_text(totals.footprint), fragmentation ? *fragmentation * 100 : 0.0);
  } else {
    fmt::print("memory      peak {}; this pool counts bytes and knows no addresses\n", to_text(totals.peak));
  }
  if (result.evicting_allocations > 0 && spec.capacity >= ideal_peak)
    fmt::print("            the live bytes would fit, but {} found no place {}: memory was freed on demand\n",
               text_at(row, "pool"), counted(result.evicting_allocations, "time"));
}

/// Prints the iterations over which the numbers are means, and the state in which the run began.
void print_iterations(const Row& row, const Cycle& cycle) {
  const std::string began =
      cycle.start_on_host == Bytes{}
          ? "with nothing on the host only"
          : fmt::format("with {} of its state on the host only; the copies that put it there are not counted",
                        to_text(cycle.start_on_host));
  if (!std::get<bool>(at(row, "steady"))) {
    fmt::print("step        one step alone, which began {}\n", began);
    return;
  }
  if (std::holds_alternative<std::monostate>(at(row, "cycle_iterations"))) {
    fmt::print("iteration   the one in which it ended, after {}; the first began {}\n", counted(cycle.lead_in, "other"),
               began);
    return;
  }
  fmt::print("iteration   the mean of {}{}; the first took {} and began {}\n",
             cycle.settled ? fmt::format("a cycle of {}", cycle.iterations)
                           : fmt::format("the last {}, which do not repeat", cycle.iterations),
             cycle.lead_in == 0 ? "" : fmt::format(" after {}", counted(cycle.lead_in, "iteration")),
             to_text(cycle.first_iteration), began);
}

void print_costs(const Row& row, const Result& result) {
  const Totals& totals = result.totals;
  const auto* overhead = std::get_if<double>(&at(row, "overhead_ratio"));
  const Nanos search = result.search.value_or(Nanos{});
  fmt::print("time        {}{}, {} without policy and limit", result.outcome == Outcome::kOk ? "" : "ended after ",
             to_text(totals.makespan + search), to_text(result.baseline));
  if (overhead && result.outcome == Outcome::kOk) {
    fmt::print(": {:+.2f} %{}", (*overhead - 1) * 100, to_text(between_of(row)));
  }
  if (result.search) fmt::print("; {} of it the policies' own, measured", to_text(search));
  fmt::print("\n");
  print_iterations(row, result.cycle);
  fmt::print("evicted     {}", counted(totals.eviction_count, "version"));
  if (const auto* share = std::get_if<double>(&at(row, "eviction_fragmentation")))
    fmt::print("; {:.1f} % of the memory was free, in the mean, after a request that needed an eviction", *share * 100);
  fmt::print("\n");
  fmt::print("recomputed  {} in {}\n", to_text(totals.recompute), counted(totals.recompute_count, "run"));
  fmt::print("swapped     {} out, {} in\n", to_text(totals.swap_out), to_text(totals.swap_in));
  const Stall& stall = totals.stall;
  fmt::print("stalls      compute waited {}: {} for copies in, {} for places still in use, {} for other ops\n",
             to_text(stall.compute), to_text(stall.h2d), to_text(stall.d2h),
             to_text(stall.compute - stall.h2d - stall.d2h));
  if (stall.memory > Nanos{})
    fmt::print("            all waited {} for the device's allocator\n", to_text(stall.memory));
}

/// Prints a bound on all plans with the same kinds of action as this run.
void print_bound(const Row& row, const Bound& bound) {
  const std::string_view what = std::get<bool>(at(row, "steady")) ? "repeats the step in less" : "is faster";
  const std::string plan = bound.with.empty() ? "that keeps everything" : fmt::format("with {}", bound.with);
  if (!bound.feasible) {
    fmt::print("bound       no plan {} exists ({}: {})\n", plan, bound.name, bound.proof);
    return;
  }
  const auto* gap = std::get_if<double>(&at(row, "gap"));
  fmt::print("bound       {}: no plan {} {} ({}, limited by {}){}\n", to_text(bound.makespan), plan, what, bound.name,
             to_text(bound.limited_by), gap ? fmt::format("; this one takes {:+.2f} %", *gap * 100) : "");
}

void print_run(const Row& row, const RunSpec& spec, Bytes ideal_peak, const Result& result,
               const std::optional<Bound>& bound) {
  const std::string& options = text_at(row, "options");
  fmt::print("{}: {} on {}{}{}, {}, {}\n", printable(text_at(row, "trace")), text_at(row, "policy"),
             text_at(row, "pool"), options.empty() ? "" : ", ", options, spec.machine.name,
             capacity_text(spec, ideal_peak));
  fmt::print("outcome     {}{}{}\n", to_text(result.outcome), result.message.empty() ? "" : ": ", result.message);
  if (result.outcome == Outcome::kError) return;
  if (!spec.assume.name.empty()) fmt::print("assuming    what {} assumes\n", spec.assume.name);
  print_memory(row, spec, ideal_peak, result);
  print_costs(row, result);
  if (bound && !std::holds_alternative<std::monostate>(at(row, "bound_kind"))) print_bound(row, *bound);
  const auto* rate = std::get_if<double>(&at(row, "actions_per_second"));
  fmt::print("{} in {}{}\n", counted(result.totals.actions, "action"), to_text(result.plan_time),
             rate ? fmt::format(", {}/s", short_number(*rate)) : "");
}

/// Writes the plan of a run that ended well. @return  false if the run has none
bool write_plan_of(const std::string& path, const Trace& trace, const RunSpec& spec, Result result) {
  if (result.outcome != Outcome::kOk) {
    say("{}: not written; the run ended with {}, and only a run with outcome ok has a plan\n", path,
        to_text(result.outcome));
    return false;
  }
  write_plan(path, {trace.hash(), spec, result.totals, std::move(result.realised)});
  return true;
}

/// Shows the progress of a run of many iterations, on a terminal, about five times a second.
class IterationProgress {
 public:
  void show(int done) {
    done_ = done;
    const Clock::time_point now = Clock::now();
    if (!terminal_ || now - shown_ < std::chrono::milliseconds{200}) return;
    const double seconds = std::chrono::duration<double>(now - begin_).count();
    say("\r\x1b[K{} iterations, none began as an earlier one did; {}/s", grouped(done), short_number(done / seconds));
    shown_ = now;
  }
  /// Removes the line from the terminal and starts again for the next run. @return  the number of iterations done
  int clear() {
    if (shown_ != begin_) say("\r\x1b[K");
    begin_ = shown_ = Clock::now();
    return std::exchange(done_, 0);
  }

 private:
  using Clock = std::chrono::steady_clock;
  bool terminal_ = isatty(STDERR_FILENO) != 0;
  Clock::time_point begin_ = Clock::now(), shown_ = begin_;
  int done_ = 0;
};

/// Decisions of a run: printed as they are made, or kept for the run's JSON object.
class Explanations {
 public:
  Explanations(const Trace& trace, const RunSpec& spec, bool keep)
      : trace_{trace}, policies_{deciding_policies(spec)}, keep_{keep} {}

  void tell(const Decision& decision) {
    if (keep_)
      kept_.push_back(to_json(decision, trace_, policies_));
    else
      fmt::print("{}\n", to_text(decision, trace_, policies_));
  }
  nlohmann::ordered_json take() { return std::move(kept_); }

 private:
  const Trace& trace_;
  std::vector<std::string> policies_;
  bool keep_;
  nlohmann::ordered_json kept_ = nlohmann::ordered_json::array();
};

int run_simulate(const SimulateArguments& arguments) {
  const bool shows = arguments.view.view || arguments.view.map || arguments.view.at;
  if (shows && (arguments.json || arguments.decisions || !arguments.plan_out.empty()))
    throw InputError{"--view: a picture of one run; expected it without --json, --decisions and --plan-out"};
  if (is_job_file(arguments.trace)) {
    if (shows) throw InputError{"--view: expected the trace of one rank, not a job"};
    if (arguments.decisions) throw InputError{"--decisions: expected the trace of one rank, not a job"};
    return simulate_job_file(arguments.trace, arguments.grid, arguments.job, arguments.plan_out, arguments.json);
  }
  refuse_job_options(arguments.job, arguments.trace);
  if (shows) return show_run(arguments.trace, with_defaults(arguments.grid), arguments.view);
  require_writable(arguments.plan_out);
  const NamedTrace trace{arguments.trace, load_for_runs(arguments.trace)};
  if (const std::string caveat = caveat_of_times(trace.trace); !caveat.empty())
    say("{}: {}\n", arguments.trace, caveat);
  const Grid grid{with_defaults(arguments.grid), trace.trace};
  const bool keep_plan = !arguments.plan_out.empty();
  if (keep_plan && grid.size() != 1)
    throw InputError{fmt::format("--plan-out: the lists ask for {} runs; expected one", grid.size())};
  bool failed = false;
  BoundCache bounds;
  const Interruptible interruptible;
  IterationProgress progress;
  const IterationWatch watch{[&](std::span<const Totals> done) {
    return progress.show(static_cast<int>(done.size())), !Interruptible::asked();
  }};
  for (std::size_t i = 0; i < grid.size(); ++i) {
    const RunSpec spec = grid.at(i);
    Explanations explanations{trace.trace, spec, arguments.json};
    OnDecision tell;
    if (arguments.decisions) tell = [&](const Decision& decision) { explanations.tell(decision); };
    Result result = or_error([&] {
      const EndsAtOnce ends{[&] { say("{}: interrupted before the run had a result\n", spec.policy.text); }};
      return simulate_explained(trace.trace, spec, keep_plan || needs_plan(trace.trace), tell);
    });
    const int done = progress.clear();
    if (Interruptible::asked()) {
      say("{}: interrupted after {} of {} iterations\n", spec.policy.text, done, spec.iterations);
      return Interruptible::code();
    }
    const auto show = [&](const std::optional<Bound>& bound) {
      const Row row = make_row(trace, grid.ideal_peak(), spec, result, bound);
      if (arguments.json) {
        nlohmann::ordered_json object = to_json_object(row);
        if (arguments.decisions) object["decisions"] = explanations.take();
        fmt::print("{}\n", json_text(object));
      } else {
        if (i > 0) fmt::print("\n");
        print_run(row, spec, grid.ideal_peak(), result, bound);
      }
    };
    std::optional<Bound> bound;
    if (result.outcome != Outcome::kError) {
      const EndsAtOnce ends{[&] {
        show({});
        say("{}: interrupted before its bound was known\n", spec.policy.text);
      }};
      bound = bounds.find(trace.trace, spec);
    }
    show(bound);
    failed |= result.outcome == Outcome::kError;
    if (!result.cycle.settled)
      say("{}: no iteration of {} begins as an earlier one did; times are means over the last {}\n", spec.policy.text,
          result.cycle.lead_in + result.cycle.iterations, result.cycle.iterations);
    if (keep_plan) failed |= !write_plan_of(arguments.plan_out, trace.trace, spec, std::move(result));
    if (Interruptible::asked()) return Interruptible::code();
  }
  return failed ? 1 : 0;
}

const RegisterCommand kSimulate{
    {.name = "simulate",
     .summary = "what a step costs under a pool and a policy; lists and ranges run one after the other",
     .seldom = seldom_grid_options({"--at"}),
     .declare = [](const CommandLine& app) {
       const auto arguments = std::make_shared<SimulateArguments>();
       app.add_option("trace", arguments->trace,
                      "a trace, in any form that import reads, or the job file of several ranks")
           .required();
       declare_grid_options(app, arguments->grid);
       forget_defaults(arguments->grid);
       declare_job_options(app, arguments->job);
       app.add_option("--plan-out", arguments->plan_out,
                      "write the plan of the run, for validate and export; of a job: RUN.rank0.plan, ... for RUN.plan")
           .type_name("FILE");
       app.add_flag("--decisions", arguments->decisions,
                    "print a line for each decision: the request, who answered, the candidates with their scores, the "
                    "choice; with --json the key \"decisions\"");
       app.add_flag("--view", arguments->view.view,
                    "a picture of one run: memory over time, what the peak is made of, how busy the lanes are");
       app.add_flag("--map", arguments->view.map,
                    "the same, with what lies at which address when a request finds no place, or else at the peak");
       app.add_option("--at", arguments->view.at, "with --map: when this op begins, counted from 0");
       app.add_flag("--json", arguments->json, "one JSON object for each run, on a line");
       return std::function<int()>{[arguments] { return run_simulate(*arguments); }};
     }}};

}  // namespace

}  // namespace tidepool
