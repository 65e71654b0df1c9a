// tidepool structure: the repeated parts of a step.
#include "traces/step/structure.hpp"

#include <fmt/format.h>

#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>

#include "traces/base/command.hpp"
#include "traces/base/counted.hpp"
#include "traces/base/json_text.hpp"
#include "traces/base/say.hpp"
#include "traces/import/importer.hpp"

namespace tidepool {
namespace {

struct StructureArguments {
  std::string input;
  bool json = false;
};

std::string module_of(const Trace& trace, std::uint32_t op) {
  const std::string_view module = trace.text(trace.ops()[op].module);
  return module.empty() ? "" : fmt::format(", from {}", module);
}

std::int64_t number_of_ops(const Trace& trace) { return static_cast<std::int64_t>(trace.ops().size()); }

void print_text(const Trace& trace, const Structure& structure) {
  const auto print = [&](const auto& again, std::uint32_t outer, std::size_t depth) -> void {
    for (std::uint32_t i = 0; i < structure.repeats.size(); ++i) {
      const Repeat& repeat = structure.repeats[i];
      if (repeat.outer != outer) continue;
      fmt::print("{:{}}ops {} to {}: {} times {}{}\n", "", depth * 2, repeat.first, repeat.last() - 1, repeat.copies,
                 counted(repeat.period, "op"), module_of(trace, repeat.first));
      again(again, i, depth + 1);
    }
  };
  print(print, Repeat::kNone, 0);
  fmt::print("{} of {} {} a copy of no other\n", structure.distinct, counted(number_of_ops(trace), "op"),
             structure.distinct == 1 ? "is" : "are");
}

void print_json(const std::string& path, const Trace& trace, const Structure& structure, Nanos wall) {
  nlohmann::ordered_json object{{"trace", path},
                                {"ops", trace.ops().size()},
                                {"distinct_ops", structure.distinct},
                                {"repeats", nlohmann::ordered_json::array()},
                                {"wall_ns", wall.count()}};
  for (const Repeat& repeat : structure.repeats) {
    nlohmann::ordered_json one{{"first", repeat.first}, {"period", repeat.period}, {"copies", repeat.copies}};
    if (repeat.outer != Repeat::kNone) one["outer"] = repeat.outer;
    object["repeats"].push_back(std::move(one));
  }
  fmt::print("{}\n", json_text(object));
}

int run_structure(const StructureArguments& arguments) {
  const Trace trace = load_trace(arguments.input);
  const auto begin = std::chrono::steady_clock::now();
  const Structure structure = find_structure(trace);
  const Nanos wall{std::chrono::nanoseconds{std::chrono::steady_clock::now() - begin}.count()};
  arguments.json ? print_json(arguments.input, trace, structure, wall) : print_text(trace, structure);
  say("{} in {}\n", counted(number_of_ops(trace), "op"), to_text(wall));
  return 0;
}

const RegisterCommand kStructure{
    {.name = "structure",
     .summary = "find the repeated parts of a step: micro-batches, layers, blocks",
     .declare = [](const CommandLine& app) {
       const auto arguments = std::make_shared<StructureArguments>();
       app.add_option("trace", arguments->input, "RUN.tide, or anything that import reads").required();
       app.add_flag("--json", arguments->json, "one JSON object");
       return [arguments] { return run_structure(*arguments); };
     }}};

}  // namespace
}  // namespace tidepool
