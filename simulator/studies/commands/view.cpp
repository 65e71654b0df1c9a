#include "simulator/studies/commands/view.hpp"

#include <fmt/format.h>

#include <optional>
#include <string>
#include <string_view>

#include "simulator/ordered_step.hpp"
#include "simulator/registry.hpp"
#include "simulator/studies/report/address_map.hpp"
#include "simulator/studies/report/cycle_history.hpp"
#include "simulator/studies/report/view.hpp"
#include "simulator/studies/sweep/result_row.hpp"
#include "simulator/studies/text/terminal.hpp"
#include "traces/base/counted.hpp"
#include "traces/base/error.hpp"
#include "traces/base/refuse.hpp"
#include "traces/base/say.hpp"
#include "traces/base/utf8.hpp"
#include "traces/import/importer.hpp"
#include "traces/summary.hpp"

namespace tidepool {
namespace {

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

}  // namespace

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

}  // namespace tidepool
