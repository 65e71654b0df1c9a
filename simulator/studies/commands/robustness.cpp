// tidepool robustness: the time of a plan if ops are slower or faster than planned, and links slower.
#include "simulator/solvers/robustness.hpp"

#include <fmt/format.h>

#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "simulator/plan_file.hpp"
#include "traces/base/command_line.hpp"
#include "traces/base/error.hpp"
#include "traces/base/text.hpp"
#include "traces/import/importer.hpp"

namespace tidepool {
namespace {

struct RobustnessArguments {
  std::string plan, trace;
  double by = 0.1;
  std::uint64_t seed = 1;
  bool json = false;
};

/// Makespan over the time without a limit; none if the step takes no time.
std::optional<double> overhead_ratio(const Scenario& scenario, const ScenarioCost& cost) {
  if (scenario.unlimited == Nanos{}) return {};
  return cost.ratio;
}

void print_json(const RobustnessArguments& arguments, const PlanFile& file, const std::vector<Scenario>& scenarios,
                const std::vector<ScenarioCost>& costs) {
  const std::size_t worst = worst_of(costs);
  nlohmann::ordered_json object{{"trace", arguments.trace},
                                {"trace_hash", file.trace_hash},
                                {"plan", arguments.plan},
                                {"machine", file.spec.machine.name},
                                {"by", arguments.by},
                                {"seed", arguments.seed},
                                {"predicted_ns", file.predicted.makespan.count()},
                                {"worst", scenarios[worst].name}};
  if (const auto ratio = overhead_ratio(scenarios[worst], costs[worst])) object["worst_overhead_ratio"] = *ratio;
  object["scenarios"] = nlohmann::ordered_json::array();
  for (std::size_t i = 0; i < costs.size(); ++i) {
    nlohmann::ordered_json& entry =
        object["scenarios"].emplace_back(nlohmann::ordered_json{{"name", scenarios[i].name},
                                                                {"unlimited_ns", scenarios[i].unlimited.count()},
                                                                {"makespan_ns", costs[i].makespan.count()}});
    if (const auto ratio = overhead_ratio(scenarios[i], costs[i])) entry["overhead_ratio"] = *ratio;
  }
  fmt::print("{}\n", json_text(object));
}

void print_table(const RobustnessArguments& arguments, const PlanFile& file, const std::vector<Scenario>& scenarios,
                 const std::vector<ScenarioCost>& costs) {
  fmt::print("{}: {} on {}, {}, {}; ops and links off by up to {:g} %\n\n", printable(arguments.plan),
             file.spec.policy.text, file.spec.pool.text, file.spec.machine.name,
             file.spec.capacity == kNoLimit ? "no limit" : to_text(file.spec.capacity), arguments.by * 100);
  fmt::print("  {:<16}{:>14}{:>14}{:>12}\n", "scenario", "no limit", "this plan", "overhead");
  const std::size_t worst = worst_of(costs);
  for (std::size_t i = 0; i < costs.size(); ++i) {
    const auto ratio = overhead_ratio(scenarios[i], costs[i]);
    fmt::print("  {:<16}{:>14}{:>14}{:>12}{}\n", scenarios[i].name, to_text(scenarios[i].unlimited),
               to_text(costs[i].makespan), ratio ? fmt::format("{:+.2f} %", (*ratio - 1) * 100) : "-",
               i == worst ? "  worst" : "");
  }
}

int run_robustness(const RobustnessArguments& arguments) {
  if (!(arguments.by >= 0 && arguments.by <= 0.99))
    throw InputError{fmt::format("--by: {}; expected 0 to 0.99", arguments.by)};
  const Trace trace = load_trace(arguments.trace);
  const PlanFile file = read_plan(arguments.plan, &trace);
  const std::vector<Scenario> scenarios = scenarios_around(trace, file.spec, arguments.by, arguments.seed);
  std::vector<ScenarioCost> costs;
  try {
    costs = costs_in(scenarios, file.plan);
  } catch (const PlanError& error) {
    throw InputError{fmt::format("{}: cannot be executed: {}", arguments.plan, error.what())};
  }
  arguments.json ? print_json(arguments, file, scenarios, costs) : print_table(arguments, file, scenarios, costs);
  return 0;
}

const RegisterCommand kRobustness{
    {.name = "robustness",
     .summary = "what a plan costs if ops are slower or faster than planned, and links slower",
     .seldom = {"--seed"},
     .declare = [](const CommandLine& app) {
       const auto arguments = std::make_shared<RobustnessArguments>();
       app.add_option("plan", arguments->plan, "a plan, from simulate --plan-out").required();
       app.add_option("--trace", arguments->trace, "the trace that the plan is for").required();
       app.add_option("--by", arguments->by, "links become slower by up to this share, ops slower or faster: 0 to 0.99")
           .capture_default_str();
       app.add_option("--seed", arguments->seed, "of the noise").capture_default_str();
       app.add_flag("--json", arguments->json, "one JSON object");
       return std::function<int()>{[arguments] { return run_robustness(*arguments); }};
     }}};

}  // namespace
}  // namespace tidepool
