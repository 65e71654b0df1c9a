// tidepool run: a plan or a layout carried out on a live PyTorch job, and the plan compared with its prediction.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "simulator/plan_file.hpp"
#include "simulator/solvers/packing/layout_file.hpp"
#include "traces/base/child_process.hpp"
#include "traces/base/command_line.hpp"
#include "traces/base/error.hpp"
#include "traces/base/input.hpp"
#include "traces/base/text.hpp"
#include "traces/import/importer.hpp"
#include "traces/iteration.hpp"
#include "traces/program_names.hpp"
#include "traces/trace.hpp"
#include "validator/live/live_program.hpp"

namespace tidepool {
namespace {

using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

struct RunArguments {
  std::string plan, trace, program_out, layout, fallback = "64MiB";
  std::vector<std::string> command;
  bool json = false, enforce = false;
};

/// A temporary folder for the settings and the report of the job.
class Exchange {
 public:
  Exchange() {
    std::string name = (fs::temp_directory_path() / "tidepool-run-XXXXXX").string();
    if (!mkdtemp(name.data())) throw InputError{name + ": cannot be made; expected room for temporary files"};
    folder_ = name;
  }
  ~Exchange() {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  std::string program() const { return (folder_ / "program.json").string(); }
  std::string report() const { return (folder_ / "report.json").string(); }

 private:
  fs::path folder_;
};

/// The report of the job; a value that is no JSON object if the job wrote none, or only a part of one.
Json read_report(const std::string& path) {
  std::ifstream file{path};
  return file ? Json::parse(file, nullptr, false) : Json{};
}

/// A plan for a live job.
struct FollowedPlan {
  Trace trace;
  PlanFile file;
  std::string program;        ///< see live_program()
  Bytes immovable;            ///< see immovable_bytes()
  std::optional<Bytes> held;  ///< what is saved for backward, if the compiler carries out the plan

  /// The memory that PyTorch's allocator needs for the plan: what the job cannot move stays.
  Bytes promise() const { return promised_bytes(file) + immovable; }

  /// What PyTorch's allocator may use above that without a broken promise, since it rounds sizes up: 1 %.
  Bytes rounding() const { return Bytes{promise().count() / 100}; }
};

Json to_json(const RunArguments& arguments, const std::optional<FollowedPlan>& plan, int status, const Json& report) {
  Json json{{"exit_status", status}};
  if (plan) {
    const PlanFile* const file = &plan->file;
    json["trace"] = arguments.trace;
    json["plan"] = arguments.plan;
    json["predicted_ns"] = file->predicted.makespan.count();
    json["predicted_peak_bytes"] = file->predicted.peak.count();
    json["limit_bytes"] = promised_bytes(*file).count();
    json["immovable_bytes"] = plan->immovable.count();
    if (plan->held) json["predicted_held_bytes"] = plan->held->count();
  }
  if (!report.is_object()) return json;
  if (report.contains("held_bytes")) json["measured_held_bytes"] = report["held_bytes"];
  if (report.contains("held_copies_bytes")) json["held_copies_bytes"] = report["held_copies_bytes"];
  if (report.contains("time_ns")) json["measured_ns"] = report["time_ns"];
  if (report.contains("peak_bytes")) json["measured_peak_bytes"] = report["peak_bytes"];
  for (const char* key :
       {"stays_bytes", "between_peak_bytes", "between_op", "allocated_peak_bytes", "reserved_peak_bytes", "iterations",
        "measured", "deviations", "gave_up", "stopped", "counts", "left_out", "left_out_first", "unlike",
        "unlike_steps", "between_unlike", "out_of_memory_bytes", "lost", "allocator"})
    if (report.contains(key)) json[key] = report[key];
  return json;
}

/// The first difference between the job and the recording, as text.
std::string deviation(const Json& json) {
  const Json& first = json["lost"][0];
  const std::string step = first.contains("step") ? fmt::format("step {}, ", first["step"].dump()) : "";
  return fmt::format("{}op {}: saw {}; expected {}", step, first["op"].dump(), first["saw"].get<std::string>(),
                     first["expected"].get<std::string>());
}

/// "4 as recorded, 2 not: steps 7, 14"; at most eight are named.
std::string followed_steps(const Json& json) {
  const Json steps = json.value("unlike_steps", Json::array());
  const std::int64_t unlike = json.value("unlike", json["deviations"].get<std::int64_t>());
  std::string list;
  for (std::size_t i = 0; i < std::min<std::size_t>(steps.size(), 8); ++i)
    list += (i == 0 ? "" : ", ") + steps[i].dump();
  if (!list.empty()) list = (unlike == 1 ? ": step " : ": steps ") + list + (unlike > 8 ? ", ..." : "");
  return fmt::format("{} as recorded, {} not{}", json["iterations"].dump(), unlike, list);
}

/// "; the first: drop of buffer 3 (net.weight), 2 MiB: its tensor has ended", or "".
std::string first_left_out(const Json& json, const Trace& trace) {
  const Json first = json.value("left_out_first", Json{});
  const std::int64_t index = first.is_object() ? first["buffer"].get<std::int64_t>() : -1;
  if (index < 0 || index >= std::ssize(trace.buffers())) return "";
  const BufferId buffer{static_cast<std::uint32_t>(index)};
  return fmt::format("; the first: {} of {}, {}: {}", first["verb"].get<std::string>(), buffer_text(trace, buffer),
                     to_text(trace.buffer(buffer).size), first["reason"].get<std::string>());
}

/// Prints rows of a name and a value on stderr, since stdout is that of the job's command.
void print(const Json& json) {
  const auto row = [](std::string_view name, const std::string& value) { say("{:<20}{}\n", name, value); };
  const auto quantity = [&](const char* name, const char* key, auto unit) {
    if (json.contains(key)) row(name, to_text(decltype(unit){json[key].template get<std::int64_t>()}));
  };
  const auto counts = [&](const Json& list) {
    for (const auto& [what, count] : list.items()) row(what, count.dump());
  };
  if (json.contains("iterations")) row("steps", followed_steps(json));
  quantity("predicted time", "predicted_ns", Nanos{});
  quantity("measured time", "measured_ns", Nanos{});
  quantity("predicted peak", "predicted_peak_bytes", Bytes{});
  quantity("measured peak", "measured_peak_bytes", Bytes{});
  quantity("predicted held", "predicted_held_bytes", Bytes{});
  quantity("measured held", "measured_held_bytes", Bytes{});
  quantity("copies of inputs", "held_copies_bytes", Bytes{});
  quantity(json.value("between_unlike", false) ? "peak, unlike steps" : "peak between steps", "between_peak_bytes",
           Bytes{});
  quantity("allocator's peak", "allocated_peak_bytes", Bytes{});
  quantity("reserved peak", "reserved_peak_bytes", Bytes{});
  for (const char* list : {"counts", "allocator"})
    if (json.contains(list)) counts(json[list]);
  if (json.contains("lost") && !json["lost"].empty()) row("first deviation", deviation(json));
}

/// What is saved may differ by this part (1 of 200, 0.5 %) from what the plan saves.
constexpr std::int64_t kHeldShare = 200;

/// A sentence about the first promise that was not kept; empty if all were kept.
std::string broken_promise(const RunArguments& arguments, const Json& json, const std::optional<FollowedPlan>& plan) {
  const auto number = [&](const char* key) { return json.value(key, std::int64_t{0}); };
  if (!arguments.layout.empty() && !json.contains("allocator"))
    return "not carried out: no process of the command used PyTorch on a GPU and ended normally";
  if (!plan) return "";
  const PlanFile* const file = &plan->file;
  if (json.contains("out_of_memory_bytes"))
    return fmt::format("out of memory: the job used {}; --enforce limits it to {}",
                       to_text(Bytes{number("out_of_memory_bytes")}), to_text(promised_bytes(*file)));
  if (json.contains("stopped")) return "not carried out: " + json["stopped"].get<std::string>();
  if (plan->held) {
    if (!json.contains("measured_held_bytes"))
      return "not carried out: torch.compile divided no graph of the command into forward and backward";
    const Bytes saved{number("measured_held_bytes")};
    if (std::abs((saved - *plan->held).count()) * kHeldShare > plan->held->count())
      return fmt::format("the compiled step saves {} for backward; the plan saves {}", to_text(saved),
                         to_text(*plan->held));
    return "";
  }
  if (json.value("gave_up", false))
    return fmt::format("not carried out: too many iterations in a row were not as recorded: {}", deviation(json));
  if (number("iterations") == 0)
    return json.contains("lost") && !json["lost"].empty()
               ? fmt::format("not carried out: no iteration was as recorded: {}", deviation(json))
               : "not carried out: no process of the command stepped a PyTorch optimizer as in the trace and ended "
                 "normally";
  const std::size_t at_once = complete_iterations(plan->trace);
  if (number("measured") == 0 && at_once > 1)
    return fmt::format(
        "nothing measured: the {} iterations of the trace were followed {} as one; expected three times or more, so a "
        "job of {} steps or more: the first two times in a row only show which tensors outlive them",
        at_once, number("iterations") == 1 ? "once" : "twice", 3 * at_once + 1);
  if (number("measured") == 0)
    return fmt::format(
        "nothing measured: {} iteration{} as recorded; expected more: the first two in a row only show which tensors "
        "outlive a step",
        number("iterations"), number("iterations") == 1 ? " was" : "s were");
  if (json.contains("left_out") && !json["left_out"].empty()) {
    std::string list;
    for (const auto& [verb, count] : json["left_out"].items())
      list += fmt::format("{}{} {}", list.empty() ? "" : ", ", verb, count.dump());
    return fmt::format("not carried out in full: in {} iterations these actions could not be done: {}{}",
                       number("measured"), list, first_left_out(json, plan->trace));
  }
  const auto too_much = [&](std::string_view who, Bytes peak) {
    return fmt::format("{} used {}, more than the {} that the plan promises", who, to_text(peak),
                       to_text(promised_bytes(*file)));
  };
  if (const Bytes peak{number("measured_peak_bytes")}; peak > promised_bytes(*file))
    return too_much("the step", peak) + (json.contains("stays_bytes")
                                             ? fmt::format("; the plan drops {} that stay: PyTorch cannot free memory "
                                                           "of NumPy, of a data loader or of a library",
                                                           to_text(Bytes{number("stays_bytes")}))
                                             : "");
  if (const Bytes peak{number("between_peak_bytes")}; peak > promised_bytes(*file))
    return too_much(json.value("between_unlike", false) ? "in a step unlike the recorded one, or beside it, the job"
                                                        : "between its steps the job",
                    peak) +
           (json.contains("between_op") ? "; the first op there was " + json["between_op"].get<std::string>() : "");
  if (const Bytes peak{number("allocated_peak_bytes")}; peak > plan->promise() + plan->rounding())
    return fmt::format("PyTorch's allocator used {}, more than the {} that the plan promises{}", to_text(peak),
                       to_text(plan->promise()),
                       plan->immovable > Bytes{}
                           ? fmt::format(" with {} of libraries, which stay on the device", to_text(plan->immovable))
                           : "");
  return "";
}

/// The environment variables that attach Tidepool to the processes of the command.
std::map<std::string, std::string> settings(const RunArguments& arguments, const Exchange& exchange,
                                            const std::optional<FollowedPlan>& plan) {
  const std::string packages = python_folder();
  std::map<std::string, std::string> environment{
      {"TIDEPOOL_LIVE_REPORT", exchange.report()},
      {"PYTHONPATH", prepended("PYTHONPATH", packages + "/inject:" + packages)}};
  if (plan) environment["TIDEPOOL_LIVE_PROGRAM"] = exchange.program();
  if (plan && arguments.enforce) environment["TIDEPOOL_LIMIT"] = std::to_string(promised_bytes(plan->file).count());
  if (!arguments.layout.empty()) {
    read_layout(arguments.layout);  // refuse it here rather than within the job
    environment["TIDEPOOL_LAYOUT"] = fs::absolute(arguments.layout).string();
    environment["TIDEPOOL_LAYOUT_FALLBACK"] = arguments.fallback;
    environment["TIDEPOOL_ALLOCATOR"] = packages + "/libtidepool_allocator.so";
  }
  return environment;
}

int run_run(const RunArguments& arguments) {
  if (arguments.plan.empty() && arguments.layout.empty())
    throw InputError{"run: expected --plan with --trace, or --layout"};
  if (arguments.enforce && arguments.plan.empty())
    throw InputError{"run: --enforce limits the job to a plan's capacity; expected --plan"};
  if (arguments.plan.empty() != arguments.trace.empty())
    throw InputError{"run: --plan and --trace belong together; expected both or neither"};
  try {
    parse_bytes(arguments.fallback);
  } catch (const InputError& error) {
    throw error.at("--fallback");
  }
  std::optional<FollowedPlan> plan;
  if (!arguments.plan.empty()) {
    Trace trace = load_trace(arguments.trace);
    PlanFile file = read_plan(arguments.plan, &trace);
    if (is_of_graphs(trace)) {
      GraphPlan graphs = graph_plan(trace, file);
      plan = FollowedPlan{std::move(trace), std::move(file), std::move(graphs.text), Bytes{}, graphs.held};
    } else {
      std::string program = live_program(trace, file, arguments.plan);
      const Bytes immovable = immovable_bytes(trace, file);
      plan = FollowedPlan{std::move(trace), std::move(file), std::move(program), immovable, std::nullopt};
    }
    if (!arguments.program_out.empty()) write_file(arguments.program_out, plan->program);
  }
  if (arguments.command.empty()) {
    if (arguments.program_out.empty())
      throw InputError{"run: no command; expected one after --, as in -- python3 train.py"};
    return 0;
  }
  const Exchange exchange;
  if (plan) write_file(exchange.program(), plan->program);
  const int status = run_child(arguments.command, {.environment = settings(arguments, exchange, plan),
                                                   .output = arguments.json ? STDERR_FILENO : -1});
  const Json report = read_report(exchange.report());
  const Json json = to_json(arguments, plan, status, report);
  if (arguments.json)
    fmt::print("{}\n", json_text(json));
  else
    print(json);
  if (plan && plan->immovable > Bytes{})
    say("tidepool: {} that the plan saves are not saved: they are memory of libraries such as cuBLAS, which the "
        "job cannot move; PyTorch's allocator needs up to {}\n",
        to_text(plan->immovable), to_text(plan->promise()));
  const std::string broken = broken_promise(arguments, json, plan);
  if (!broken.empty()) say("tidepool: {}\n", broken);
  return status != 0 ? status : broken.empty() ? 0 : 1;
}

const RegisterCommand kRun{
    {.name = "run",
     .summary = "execute a plan or a layout in a live PyTorch job, and compare with the prediction",
     .seldom = {"--layout", "--fallback", "--program-out"},
     .declare = [](const CommandLine& app) {
       const auto arguments = std::make_shared<RunArguments>();
       app.add_option("--plan", arguments->plan, "a plan, from simulate --plan-out");
       app.add_option("--trace", arguments->trace, "the trace that the plan is for, recorded by tidepool_torch");
       app.add_option("--layout", arguments->layout,
                      "a layout, from pack --layout-out, for a pluggable allocator of PyTorch (needs a GPU)");
       app.add_option("--fallback", arguments->fallback, "memory above the layout for requests that are not in it")
           .capture_default_str();
       app.add_flag("--enforce", arguments->enforce,
                    "end the job with PyTorch's OutOfMemoryError if it uses more than the plan's capacity after the "
                    "whole plan is carried out");
       app.add_flag("--json", arguments->json, "one JSON object; the command's output goes to stderr");
       app.add_option("--program-out", arguments->program_out, "write the program for tidepool_live to this file");
       app.add_option("command", arguments->command, "after --: the training script, unmodified");
       return std::function<int()>{[arguments] { return run_run(*arguments); }};
     }}};

}  // namespace
}  // namespace tidepool
