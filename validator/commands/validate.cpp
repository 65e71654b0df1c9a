// tidepool validate: a plan on real memory, compared with its prediction.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "simulator/ordered_step.hpp"
#include "simulator/plan_file.hpp"
#include "simulator/run.hpp"
#include "simulator/studies/sweep/database.hpp"
#include "traces/base/command_line.hpp"
#include "traces/base/error.hpp"
#include "traces/base/refuse.hpp"
#include "traces/base/text.hpp"
#include "traces/import/importer.hpp"
#include "validator/validation.hpp"

namespace tidepool {
namespace {

using Json = nlohmann::ordered_json;

struct ValidateArguments {
  std::string plan, trace, arena, machine, results;
  ValidationOptions options;
  bool json = false;
};

struct Subject {
  const ValidateArguments& arguments;
  const Trace& trace;  ///< PlannedStep::trace() of the plan
  const PlanFile& file;
  const Validation& result;
};

/// Refuses options that the backend would ignore, and those that leave nothing to compare.
void refuse_unused(const ValidationOptions& options) {
  const ValidationOptions defaults;
  const bool host = options.backend == "host";
  if (host && options.graph) refuse("--graph: expected --backend cuda");
  if (host && options.device != defaults.device) refuse("--device: expected --backend cuda");
  if (options.backend == "cuda" && options.time_scale > 0) refuse("--time-scale: expected --backend host");
  if (options.backend == "cuda" && !options.threads) refuse("--no-threads: expected --backend host");
  if (host && options.repeat > defaults.repeat && options.time_scale == 0)
    refuse("--repeat: applies to --time-scale, which is not given; expected both");
  const bool timed = options.repeat > 0 && (!host || options.time_scale > 0);
  if (!options.content && !timed)
    refuse("--no-content: no time is measured, so nothing would be compared; expected {}",
           host ? "--time-scale above 0, and --repeat 1 or more" : "--repeat 1 or more");
}

ValidationOptions options_of(const ValidateArguments& arguments) {
  ValidationOptions options = arguments.options;
  if (!arguments.arena.empty()) {
    try {
      options.arena = parse_bytes(arguments.arena);
    } catch (const InputError& error) {
      throw error.at("--arena");
    }
  }
  if (options.time_scale != 0 && !(options.time_scale >= 1e-6 && options.time_scale <= 1e6))
    throw InputError{fmt::format("--time-scale: {}; expected a number from 1e-6 to 1e6, or 0", options.time_scale)};
  if (options.time_scale > 0 && !options.threads) throw InputError{"--time-scale: expected no --no-threads"};
  if (options.repeat < 0) throw InputError{"--repeat: expected how often to measure, 0 or more"};
  if (options.move && (options.backend != "host" || options.time_scale != 1))
    throw InputError{"--move: expected --backend host and --time-scale 1: bytes cannot be moved slower than they are"};
  refuse_unused(options);
  return options;
}

/// Predicts the plan on another machine. @throws InputError  if that machine cannot execute it
void predict_on(const std::string& machine, const Trace& trace, PlanFile& file) {
  file.spec.machine = issuing(find_machine(machine), trace);
  try {
    file.predicted = replay(trace, file.spec, file.plan);
  } catch (const PlanError& error) {
    throw InputError{fmt::format("--machine: {} cannot execute the plan: {}", machine, error.what())};
  }
}

bool is_transfer(const TaskTime& time) { return time.kind == TaskKind::kSwapOut || time.kind == TaskKind::kSwapIn; }
const char* direction(const TaskTime& time) { return time.kind == TaskKind::kSwapOut ? "d2h" : "h2d"; }

/// The run whose lanes and times are printed: the timed run with the median time, or the last timed run if times were
/// not compared. Without timed runs, the run that compared bytes; null if there is none.
const ExecutionReport* shown(const Validation& result) {
  if (!result.timed.empty()) return result.comparison ? &median_run(result.timed) : &result.timed.back();
  return result.checked ? &*result.checked : nullptr;
}

Json detail(const Subject& subject) {
  const Validation& result = subject.result;
  const ExecutionReport& run = *shown(result);
  Json lanes = Json::array(), transfers = Json::array();
  for (std::size_t i = 0; i < run.lanes.size(); ++i) {
    const LaneReport& lane = run.lanes[i];
    lanes.push_back(
        {{"lane", lane.name}, {"tasks", lane.tasks}, {"bytes", lane.bytes.count()}, {"busy_ns", lane.busy.count()}});
    if (!result.comparison) continue;
    lanes.back()["predicted_busy_ns"] = result.comparison->lanes[i].predicted.count();
    lanes.back()["measured_busy_ns"] = result.comparison->lanes[i].measured.count();
  }
  for (const TaskTime& time : run.times) {
    if (!is_transfer(time)) continue;
    const Nanos predicted = predicted_time(subject.trace, subject.file.spec.machine, time);
    Json entry{{"direction", direction(time)},
               {"action", time.action},
               {"version", time.version.value()},
               {"bytes", subject.trace.size(time.version).count()},
               {"predicted_ns", predicted.count()}};
    if (run.measured) {
      entry["measured_ns"] = (time.end - time.begin).count();
      entry["begin_ns"] = time.begin.count();
    }
    transfers.push_back(std::move(entry));
  }
  return {{"lanes", lanes}, {"transfers", transfers}};
}

Json to_json(const Subject& subject) {
  const auto& [arguments, trace, file, result] = subject;
  Json json{{"trace", arguments.trace},
            {"trace_hash", file.trace_hash},
            {"plan", arguments.plan},
            {"backend", arguments.options.backend}};
  if (!result.device.empty()) json["device"] = result.device;
  json["machine"] = file.spec.machine.name;
  json["outcome"] = result.outcome;
  if (!result.message.empty()) json["message"] = result.message;
  if (result.checked) json["corrupt_bytes"] = result.checked->corrupt.count();
  json["predicted_ns"] = result.predicted.makespan.count();
  if (result.comparison) {
    const TimeComparison& comparison = *result.comparison;
    const auto [least, most] = std::minmax_element(
        result.timed.begin(), result.timed.end(),
        [](const ExecutionReport& a, const ExecutionReport& b) { return *a.measured < *b.measured; });
    json["measured_ns"] = comparison.measured.count();
    json["measured_min_ns"] = least->measured->count();
    json["measured_max_ns"] = most->measured->count();
    json["repeats"] = result.timed.size();
    json["error"] = comparison.error;
    json["predicted_stall_ns"] = comparison.predicted_stall.count();
    json["measured_stall_ns"] = comparison.measured_stall.count();
    if (comparison.copy_error) json["copy_error"] = *comparison.copy_error;
    if (comparison.worst) {
      const TaskComparison& worst = comparison.tasks[*comparison.worst];
      json["worst"] = {{"action", worst.time.action},
                       {"what", to_text(file.plan.actions[worst.time.action])},
                       {"predicted_ns", worst.predicted.count()},
                       {"measured_ns", worst.measured.count()}};
    }
  }
  json["predicted_peak_bytes"] = file.predicted.peak.count();
  json["actions"] = file.plan.actions.size();
  if (file.plan.order) json["order"] = file.plan.order->rule;
  if (const ExecutionReport* const run = result.checked ? &*result.checked : shown(result)) {
    json["measured_peak_bytes"] = run->peak.count();
    json["read_bytes"] = run->read.count();
    json["unit_bytes"] = run->unit.count();
    json["wall_ns"] = shown(result)->wall.count();
    if (arguments.options.detail) json.update(detail(subject));
  }
  return json;
}

void print_row(std::string_view name, const std::string& value) { fmt::print("{:<16}{}\n", name, value); }

void print_comparison(const Subject& subject) {
  const TimeComparison& comparison = *subject.result.comparison;
  const auto& runs = subject.result.timed;
  const auto [least, most] =
      std::minmax_element(runs.begin(), runs.end(),
                          [](const ExecutionReport& a, const ExecutionReport& b) { return *a.measured < *b.measured; });
  std::string measured = to_text(comparison.measured);
  if (runs.size() > 1)
    measured += fmt::format(", the median of {} runs from {} to {}", runs.size(), to_text(*least->measured),
                            to_text(*most->measured));
  print_row("measured time", measured);
  print_row("error", fmt::format("{:+.2f} %", comparison.error * 100));
  print_row("stall", fmt::format("{} predicted, {} measured", to_text(comparison.predicted_stall),
                                 to_text(comparison.measured_stall)));
  if (comparison.copy_error)
    print_row("copies", fmt::format("{:.2f} % from their prediction, in the median", *comparison.copy_error * 100));
  if (!comparison.worst) return;
  const TaskComparison& worst = comparison.tasks[*comparison.worst];
  print_row("worst", fmt::format("{}: {} predicted, {} measured", to_text(subject.file.plan.actions[worst.time.action]),
                                 to_text(worst.predicted), to_text(worst.measured)));
}

void print_detail(const Subject& subject) {
  const ExecutionReport& run = *shown(subject.result);
  fmt::print("\n{:<16}{:>10}{:>14}{:>14}{:>14}\n", "lane", "tasks", "bytes", "busy", "predicted");
  for (std::size_t i = 0; i < run.lanes.size(); ++i)
    fmt::print("{:<16}{:>10}{:>14}{:>14}{:>14}\n", run.lanes[i].name, run.lanes[i].tasks, to_text(run.lanes[i].bytes),
               to_text(run.lanes[i].busy),
               subject.result.comparison ? to_text(subject.result.comparison->lanes[i].predicted) : "");
  if (std::none_of(run.times.begin(), run.times.end(), is_transfer)) return;
  fmt::print("\n{:<10}{:>10}{:>10}{:>14}{:>14}{:>14}\n", "transfer", "action", "version", "bytes", "time", "predicted");
  for (const TaskTime& time : run.times)
    if (is_transfer(time))
      fmt::print("{:<10}{:>10}{:>10}{:>14}{:>14}{:>14}\n", direction(time), time.action, time.version.value(),
                 to_text(subject.trace.size(time.version)), to_text(time.end - time.begin),
                 to_text(predicted_time(subject.trace, subject.file.spec.machine, time)));
}

void print(const Subject& subject) {
  const auto& [arguments, trace, file, result] = subject;
  print_row("outcome", result.outcome);
  if (!result.message.empty()) print_row("because", result.message);
  if (!result.device.empty()) print_row("device", result.device);
  print_row("plan",
            fmt::format("{} on {}, {} actions{}", file.spec.policy.text, file.spec.pool.text, file.plan.actions.size(),
                        file.plan.order ? fmt::format(", ops in another order ({})", file.plan.order->rule) : ""));
  print_row("predicted time", fmt::format("{} on {}", to_text(result.predicted.makespan), file.spec.machine.name));
  if (result.comparison) print_comparison(subject);
  print_row("predicted peak", to_text(file.predicted.peak));
  if (shown(result) == nullptr) return;
  const ExecutionReport& run = result.checked ? *result.checked : *shown(result);
  print_row("measured peak", to_text(run.peak));
  print_row("compared", fmt::format("{}, {} of it corrupt; a word for {}; {}", to_text(run.read), to_text(run.corrupt),
                                    counted(run.unit.count(), "byte"), to_text(run.wall)));
  if (arguments.options.detail) print_detail(subject);
}

int run_validate(const ValidateArguments& arguments) {
  const ValidationOptions options = options_of(arguments);
  const Validator validator{options};
  const Trace trace = load_trace(arguments.trace);
  PlanFile file = read_plan(arguments.plan, &trace);
  if (!arguments.machine.empty()) predict_on(arguments.machine, trace, file);
  std::optional<Database> results;
  if (!arguments.results.empty()) results.emplace(arguments.results, Database::Open::kExisting);
  const Validation result = validator.validate(trace, file);
  if (results) {
    std::vector<MeasuredRun> runs = measured_runs(result, options.backend);
    for (MeasuredRun& run : runs) run.run_key = run_key(trace, file.spec);
    results->insert(runs);
  }
  const PlannedStep step{trace, file.plan};
  const Subject subject{arguments, step.trace(), file, result};
  if (arguments.json)
    fmt::print("{}\n", json_text(to_json(subject)));
  else
    print(subject);
  return result.outcome == "ok" ? 0 : 1;
}

const RegisterCommand kValidate{
    {.name = "validate",
     .summary = "re-execute a plan on real memory and compare every byte, and its cost with the prediction",
     .seldom = {"--detail", "--machine", "--repeat", "--no-content", "--time-scale", "--move", "--graph", "--device",
                "--arena", "--no-threads"},
     .declare = [](const CommandLine& app) {
       const auto arguments = std::make_shared<ValidateArguments>();
       ValidationOptions& options = arguments->options;
       app.add_option("plan", arguments->plan, "a plan, from simulate --plan-out").required();
       app.add_option("--trace", arguments->trace, "the trace that the plan is for").required();
       app.add_option("--backend", options.backend, "host: this machine's memory, one thread per lane; cuda: a GPU");
       app.add_flag("--json", arguments->json, "one JSON object");
       app.add_flag("--detail", options.detail, "also each lane and each transfer");
       app.add_option("--machine", arguments->machine,
                      "predict for this machine instead of the one that the plan was made for, see tidepool calibrate");
       app.add_option("--results", arguments->results, "keep the measurements in this database, which sweep wrote")
           .type_name("FILE");
       app.add_option(
           "--repeat", options.repeat,
           "the number of timed runs; the median counts (default 1; 0 with --backend cuda: only compare bytes)");
       app.add_flag("!--no-content", options.content, "only measure time: do not compare bytes");
       app.add_option("--time-scale", options.time_scale,
                      "host: measure time; ops and copies take this multiple of their time");
       app.add_flag("--move", options.move,
                    "host: copies move all their bytes instead of only waiting; use it with --time-scale 1 and the "
                    "machine file of calibrate --backend host");
       app.add_flag("--graph", options.graph, "cuda: submit everything as one CUDA graph");
       app.add_option("--device", options.device, "cuda: number of the device (default 0)");
       app.add_option(
           "--arena", arguments->arena,
           "most memory for content; larger plans are scaled down (default: host 256MiB, cuda as much as the "
           "plan needs)");
       app.add_flag("!--no-threads", options.threads,
                    "host: run the tasks one after the other, in issue order, without threads");
       return std::function<int()>{[arguments] { return run_validate(*arguments); }};
     }}};

}  // namespace
}  // namespace tidepool
