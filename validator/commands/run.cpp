// tidepool run: a plan carried out on a live PyTorch job, beside what was predicted for it.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "simulator/plan_file.hpp"
#include "traces/child_process.hpp"
#include "traces/command.hpp"
#include "traces/error.hpp"
#include "traces/importer.hpp"
#include "traces/input.hpp"
#include "validator/live/live_program.hpp"

namespace tidepool {
namespace {

using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

struct Arguments {
  std::string plan, trace, program_out;
  std::vector<std::string> command;
  bool json = false;
};

/// A folder for what goes to the job and comes back from it.
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

/// What the job left; null if it left nothing.
Json read_report(const std::string& path) {
  std::ifstream file{path};
  return file ? Json::parse(file, nullptr, false) : Json{};
}

Json to_json(const Arguments& arguments, const PlanFile& file, int status, const Json& report) {
  Json json{{"trace", arguments.trace},
            {"plan", arguments.plan},
            {"exit_status", status},
            {"predicted_ns", file.predicted.makespan.count()},
            {"predicted_peak_bytes", file.predicted.peak.count()}};
  if (!report.is_object()) return json;
  if (report.contains("time_ns")) json["measured_ns"] = report["time_ns"];
  if (report.contains("peak_bytes")) json["measured_peak_bytes"] = report["peak_bytes"];
  for (const char* key : {"iterations", "deviations", "gave_up", "counts", "lost"})
    if (report.contains(key)) json[key] = report[key];
  return json;
}

void print(const Json& json) {
  const auto row = [](std::string_view name, const std::string& value) {
    fmt::print(stderr, "{:<16}{}\n", name, value);
  };
  const auto measured = [&](const char* key, auto quantity) {
    return json.contains(key) ? to_text(decltype(quantity){json[key].get<std::int64_t>()}) : "-";
  };
  row("iterations", fmt::format("{} as recorded, {} not", json["iterations"].get<std::int64_t>(),
                                json["deviations"].get<std::int64_t>()));
  row("predicted time", to_text(Nanos{json["predicted_ns"].get<std::int64_t>()}));
  row("measured time", measured("measured_ns", Nanos{}));
  row("predicted peak", to_text(Bytes{json["predicted_peak_bytes"].get<std::int64_t>()}));
  row("measured peak", measured("measured_peak_bytes", Bytes{}));
  for (const auto& [what, count] : json["counts"].items()) row(what, std::to_string(count.get<std::int64_t>()));
  if (!json["lost"].empty()) {
    const Json& first = json["lost"][0];
    row("first deviation", fmt::format("op {}: saw {}; expected {}", first["op"].get<std::int64_t>(),
                                       first["saw"].get<std::string>(), first["expected"].get<std::string>()));
  }
  if (json["gave_up"].get<bool>()) row("note", "too many iterations deviated in a row; the rest ran without the plan");
}

int run(const Arguments& arguments) {
  const Trace trace = load_trace(arguments.trace);
  const PlanFile file = read_plan(arguments.plan, &trace);
  const std::string program = live_program(trace, file, arguments.plan);
  if (!arguments.program_out.empty()) write_file(arguments.program_out, program);
  if (arguments.command.empty()) {
    if (arguments.program_out.empty())
      throw InputError{"run: no command; expected one after --, as in -- python train.py"};
    return 0;
  }
  const Exchange exchange;
  write_file(exchange.program(), program);
  const std::string packages = python_folder();
  const int status = run_child(
      arguments.command, {.environment = {{"TIDEPOOL_LIVE_PROGRAM", exchange.program()},
                                          {"TIDEPOOL_LIVE_REPORT", exchange.report()},
                                          {"PYTHONPATH", prepended("PYTHONPATH", packages + "/inject:" + packages)}},
                          .output_to_stderr = arguments.json});
  const Json report = read_report(exchange.report());
  const Json json = to_json(arguments, file, status, report);
  if (arguments.json)
    fmt::print("{}\n", json.dump());
  else if (report.is_object())
    print(json);
  if (!report.is_object())
    fmt::print(
        stderr,
        "tidepool: the plan was not carried out: no process of the command stepped a PyTorch optimizer and ended "
        "in order\n");
  if (status != 0) return status;
  return report.is_object() && report.value("iterations", 0) > 0 ? 0 : 1;
}

const RegisterCommand kRegistered{
    {.name = "run",
     .summary = "carry a plan out on a live PyTorch job, and compare with the prediction",
     .declare = [](CLI::App& app) {
       const auto arguments = std::make_shared<Arguments>();
       app.add_option("--plan", arguments->plan, "a plan, from simulate --plan-out")->required();
       app.add_option("--trace", arguments->trace, "the trace that the plan is for, recorded by tidepool_torch")
           ->required();
       app.add_flag("--json", arguments->json, "one JSON object; the command's output goes to stderr");
       app.add_option("--program-out", arguments->program_out, "write what tidepool_live is told to this file");
       app.add_option("command", arguments->command, "after --: the training script, unmodified");
       return std::function<int()>{[arguments] { return run(*arguments); }};
     }}};

}  // namespace
}  // namespace tidepool
