// tidepool validate: a plan on real memory, compared with what was predicted for it.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "simulator/plan_file.hpp"
#include "traces/command.hpp"
#include "traces/error.hpp"
#include "traces/importer.hpp"
#include "validator/host_backend.hpp"

namespace tidepool {
namespace {

using Json = nlohmann::ordered_json;

struct Arguments {
  std::string plan, trace, backend = "host", arena;
  double time_scale = 0;
  bool json = false, detail = false, threads = true;
};

/// What became of the plan. `report` is absent if it could not be executed.
struct Validation {
  std::string outcome = "ok", message;
  std::optional<HostReport> report;
  std::optional<double> error;  ///< measured / predicted - 1
};

HostOptions host_options(const Arguments& arguments, const PlanFile& file) {
  HostOptions options;
  options.copy_on_write = file.spec.assume.copy_on_write;
  options.threads = arguments.threads;
  options.machine = file.spec.machine;
  options.time_scale = arguments.time_scale;
  options.detail = arguments.detail;
  if (!arguments.arena.empty()) {
    try {
      options.arena = parse_bytes(arguments.arena);
    } catch (const InputError& error) {
      throw error.at("--arena");
    }
  }
  return options;
}

Validation validate(const Trace& trace, const PlanFile& file, const HostOptions& options) {
  Validation result;
  try {
    result.report = execute_on_host(trace, file.plan, options);
    const HostReport& report = *result.report;
    if (report.outcome != HostOutcome::kOk) {
      result.outcome = to_text(report.outcome);
      result.message = report.message;
      return result;
    }
    if (report.measured && file.spec.iterations == 1 && file.predicted.makespan > Nanos{})
      result.error =
          static_cast<double>(report.measured->count()) / static_cast<double>(file.predicted.makespan.count()) - 1;
    if (const Totals replayed = replay(trace, file.spec, file.plan); replayed != file.predicted) {
      result.outcome = "error";
      result.message = fmt::format("its actions take {} ns and {} bytes; the plan predicts {} ns and {} bytes",
                                   replayed.makespan.count(), replayed.peak.count(), file.predicted.makespan.count(),
                                   file.predicted.peak.count());
    }
  } catch (const PlanError& error) {
    result.outcome = "error";
    result.message = error.what();
  }
  return result;
}

Json to_json(const HostReport& report, const Trace& trace, const PlanFile& file) {
  Json lanes = Json::array(), transfers = Json::array();
  for (const LaneReport& lane : report.lanes)
    lanes.push_back(
        {{"lane", lane.name}, {"tasks", lane.tasks}, {"bytes", lane.bytes.count()}, {"busy_ns", lane.busy.count()}});
  for (const TaskTime& time : report.times) {
    if (time.kind != TaskKind::kSwapOut && time.kind != TaskKind::kSwapIn) continue;
    const bool out = time.kind == TaskKind::kSwapOut;
    const Link& link = out ? file.spec.machine.d2h : file.spec.machine.h2d;
    Json entry{{"direction", out ? "d2h" : "h2d"},
               {"action", time.action},
               {"version", time.version.value()},
               {"bytes", trace.size(time.version).count()},
               {"predicted_ns", link.time(trace.size(time.version)).count()}};
    if (report.measured) entry["measured_ns"] = (time.end - time.begin).count();
    transfers.push_back(std::move(entry));
  }
  return {{"lanes", lanes}, {"transfers", transfers}};
}

Json to_json(const Arguments& arguments, const Trace& trace, const PlanFile& file, const Validation& result) {
  Json json{{"trace", arguments.trace},
            {"trace_hash", file.trace_hash},
            {"plan", arguments.plan},
            {"backend", arguments.backend},
            {"outcome", result.outcome}};
  if (!result.message.empty()) json["message"] = result.message;
  if (result.report) json["corrupt_bytes"] = result.report->corrupt.count();
  json["predicted_ns"] = file.predicted.makespan.count();
  if (result.report && result.report->measured) json["measured_ns"] = result.report->measured->count();
  if (result.error) json["error"] = *result.error;
  json["predicted_peak_bytes"] = file.predicted.peak.count();
  json["actions"] = file.plan.actions.size();
  if (!result.report) return json;
  json["measured_peak_bytes"] = result.report->peak.count();
  json["read_bytes"] = result.report->read.count();
  json["unit_bytes"] = result.report->unit.count();
  json["wall_ns"] = result.report->wall.count();
  if (arguments.detail) json.update(to_json(*result.report, trace, file));
  return json;
}

void print(const Arguments& arguments, const Trace& trace, const PlanFile& file, const Validation& result) {
  const auto row = [](std::string_view name, const std::string& value) { fmt::print("{:<16}{}\n", name, value); };
  row("outcome", result.outcome);
  if (!result.message.empty()) row("because", result.message);
  row("plan", fmt::format("{} on {}, {} actions", file.spec.policy, file.spec.pool, file.plan.actions.size()));
  row("predicted time", to_text(file.predicted.makespan));
  if (result.report && result.report->measured) row("measured time", to_text(*result.report->measured));
  if (result.error) row("error", fmt::format("{:+.2f} %", *result.error * 100));
  row("predicted peak", to_text(file.predicted.peak));
  if (!result.report) return;
  const HostReport& report = *result.report;
  row("measured peak", to_text(report.peak));
  row("compared", fmt::format("{}, {} of it corrupt; a word for {} bytes; {}", to_text(report.read),
                              to_text(report.corrupt), report.unit.count(), to_text(report.wall)));
  if (!arguments.detail) return;
  fmt::print("\n{:<16}{:>10}{:>14}{:>14}\n", "lane", "tasks", "bytes", "busy");
  for (const LaneReport& lane : report.lanes)
    fmt::print("{:<16}{:>10}{:>14}{:>14}\n", lane.name, lane.tasks, to_text(lane.bytes), to_text(lane.busy));
  fmt::print("\n{:<10}{:>10}{:>10}{:>14}{:>14}\n", "transfer", "action", "version", "bytes", "time");
  for (const TaskTime& time : report.times)
    if (time.kind == TaskKind::kSwapOut || time.kind == TaskKind::kSwapIn)
      fmt::print("{:<10}{:>10}{:>10}{:>14}{:>14}\n", time.kind == TaskKind::kSwapOut ? "d2h" : "h2d", time.action,
                 time.version.value(), to_text(trace.size(time.version)), to_text(time.end - time.begin));
}

int run(const Arguments& arguments) {
  if (arguments.backend == "cuda") throw InputError{"--backend: this build has no CUDA backend; expected host"};
  if (arguments.backend != "host")
    throw InputError{fmt::format("--backend: '{}' is not a backend; expected host or cuda", arguments.backend)};
  if (arguments.time_scale < 0 || (arguments.time_scale > 0 && !arguments.threads))
    throw InputError{"--time-scale: expected a positive number, and no --no-threads"};
  const Trace trace = load_trace(arguments.trace);
  const PlanFile file = read_plan(arguments.plan, &trace);
  const Validation result = validate(trace, file, host_options(arguments, file));
  if (arguments.json)
    fmt::print("{}\n", to_json(arguments, trace, file, result).dump());
  else
    print(arguments, trace, file, result);
  return result.outcome == "ok" ? 0 : 1;
}

const RegisterCommand kRegistered{
    {.name = "validate",
     .summary = "re-execute a plan on real memory and compare every byte, and its cost with the prediction",
     .declare = [](CLI::App& app) {
       const auto arguments = std::make_shared<Arguments>();
       app.add_option("plan", arguments->plan, "a plan, from simulate --plan-out")->required();
       app.add_option("--trace", arguments->trace, "the trace that the plan is for")->required();
       app.add_option("--backend", arguments->backend, "host: this machine's memory, one thread per lane; cuda: a GPU");
       app.add_flag("--json", arguments->json, "one JSON object");
       app.add_flag("--detail", arguments->detail, "also each lane and each transfer");
       app.add_option("--time-scale", arguments->time_scale,
                      "ops and copies take this multiple of their time, and time is measured; indicative on the host");
       app.add_option("--arena", arguments->arena,
                      "most memory to take for content; larger plans are scaled down (default 256MiB)");
       app.add_flag("!--no-threads", arguments->threads, "everything in issue order, one thing after the other");
       return std::function<int()>{[arguments] { return run(*arguments); }};
     }}};

}  // namespace
}  // namespace tidepool
