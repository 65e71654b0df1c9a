// tidepool order: the ops of a step in an order that needs less memory.
#include <fmt/format.h>

#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "simulator/solvers/order/alive.hpp"
#include "simulator/solvers/order/search.hpp"
#include "traces/base/command_line.hpp"
#include "traces/base/output.hpp"
#include "traces/base/refuse.hpp"
#include "traces/base/text.hpp"
#include "traces/file/writer.hpp"
#include "traces/import/importer.hpp"
#include "traces/one_device.hpp"
#include "traces/step/dependencies.hpp"
#include "traces/summary.hpp"

namespace tidepool {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kLeastPercent = 0.05;  // a smaller change of the peak is not printed

struct OrderArguments {
  std::string trace, output, rule = "lowest";
  bool lists = false, json = false;
};

/// The step, before and after.
struct Reordering {
  const Trace& recorded;
  const Trace& apart;  ///< with one op for each tensor of a list, unless --lists is given
  const Dependencies& dependencies;
  Bytes freed;  ///< peak in the recorded order, every buffer freed after its last use
  OpOrder best;
  Bytes bound;
};

void print_json(const Reordering& found) {
  Json pairs = Json::object();
  for (std::size_t i = 0; i < kReasons; ++i)
    pairs[std::string{to_text(static_cast<Reason>(i))}] = found.dependencies.pairs[i];
  const Json json{{"ops", found.recorded.ops().size()},
                  {"ops_apart", found.apart.ops().size()},
                  {"ideal_peak_bytes", found.recorded.ideal_peak().count()},
                  {"apart_peak_bytes", found.apart.ideal_peak().count()},
                  {"freed_peak_bytes", found.freed.count()},
                  {"order_peak_bytes", found.best.peak.count()},
                  {"rule", found.best.rule},
                  {"exact", found.best.exact},
                  {"bound_bytes", found.bound.count()},
                  {"dependencies", pairs}};
  fmt::print("{}\n", json_text(json));
}

std::string ops_of(const Trace& trace) { return counted(static_cast<std::int64_t>(trace.ops().size()), "op"); }

void print_table(const std::string& name, const Reordering& found) {
  const auto row = [&](const std::string& what, Bytes peak) {
    const auto recorded = static_cast<double>(found.recorded.ideal_peak().count());
    const double change = 100 * (static_cast<double>(peak.count()) / recorded - 1);
    fmt::print("  {:<42}{:>12}{}\n", what, to_text(peak),
               std::abs(change) < kLeastPercent ? "" : fmt::format("{:>+10.1f} %", change));
  };
  fmt::print("{}: most bytes alive\n", printable(name));
  row("as recorded, " + ops_of(found.recorded), found.recorded.ideal_peak());
  if (found.apart.ops().size() > found.recorded.ops().size())
    row("an op for each tensor of a list, " + ops_of(found.apart), found.apart.ideal_peak());
  row("each buffer freed after its last use", found.freed);
  row(fmt::format("in another order ({})", found.best.rule), found.best.peak);
  row(found.best.exact ? "no order needs less" : "no order needs less than",
      found.best.exact ? found.best.peak : found.bound);
  std::string kept;
  for (std::size_t i = 0; i < kReasons; ++i)
    if (found.dependencies.pairs[i] > 0)
      kept += fmt::format("{}{} {}", kept.empty() ? "" : ", ", to_text(static_cast<Reason>(i)),
                          found.dependencies.pairs[i]);
  fmt::print("  pairs of ops that keep their order: {}\n", kept.empty() ? "none" : kept);
}

int run_order(const OrderArguments& arguments) {
  require_writable(arguments.output);
  const Trace trace = load_trace(arguments.trace);
  if (const std::size_t iterations = summarize(trace).iterations; iterations > 1)
    refuse("{}: {} iterations; expected one step, as 'tidepool import {} --iteration 1 -o step.tide' writes it",
           arguments.trace, iterations, arguments.trace);
  naming(arguments.trace, [&] { require_one_device(trace, "an order has one peak"); });
  if (trace.buffers().empty()) refuse("{}: no buffers; expected a trace with what is allocated", arguments.trace);
  const Trace apart = arguments.lists ? trace : split_foreach(trace);
  const Dependencies dependencies = naming(arguments.trace, [&] { return dependencies_of(apart); });
  const Lifetimes lifetimes{apart};
  const Reordering found{trace,
                         apart,
                         dependencies,
                         recorded_order(lifetimes).peak,
                         naming("--rule", [&] { return order_by(arguments.rule, lifetimes, dependencies); }),
                         alive_bound(lifetimes, dependencies)};
  if (!arguments.output.empty())
    write_file(arguments.output, to_trace_file(lifetimes.in_order(found.best.ops, found.best.rule)));
  arguments.json ? print_json(found) : print_table(arguments.trace, found);
  return 0;
}

const RegisterCommand kOrder{
    {.name = "order",
     .summary = "put the ops of a step into an order that needs less memory",
     .seldom = {"--lists"},
     .declare = [](const CommandLine& app) {
       const auto arguments = std::make_shared<OrderArguments>();
       app.add_option("trace", arguments->trace, "one step, in any form that import reads").required();
       app.add_option("--rule", arguments->rule,
                      "recorded, least, eager, latest, or lowest: the best of them, improved")
           .capture_default_str();
       app.add_flag("--lists", arguments->lists, "leave an op on lists of tensors (aten::_foreach_*) whole");
       app.add_option("-o,--output", arguments->output, "write the step in the new order, RUN.tide");
       app.add_flag("--json", arguments->json, "one JSON object");
       return std::function<int()>{[arguments] { return run_order(*arguments); }};
     }}};

}  // namespace
}  // namespace tidepool
