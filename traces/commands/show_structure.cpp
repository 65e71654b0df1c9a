#include "traces/commands/show_structure.hpp"

#include <fmt/format.h>

#include <chrono>
#include <nlohmann/json.hpp>

#include "traces/base/counted.hpp"
#include "traces/base/json_text.hpp"
#include "traces/base/say.hpp"
#include "traces/step/structure.hpp"

namespace tidepool {
namespace {

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

}  // namespace

void show_structure(const std::string& path, const Trace& trace, bool json) {
  const auto begin = std::chrono::steady_clock::now();
  const Structure structure = find_structure(trace);
  const Nanos wall{std::chrono::nanoseconds{std::chrono::steady_clock::now() - begin}.count()};
  json ? print_json(path, trace, structure, wall) : print_text(trace, structure);
  say("{} in {}\n", counted(number_of_ops(trace), "op"), to_text(wall));
}

}  // namespace tidepool
