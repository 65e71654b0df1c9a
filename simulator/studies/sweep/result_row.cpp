#include "simulator/studies/sweep/result_row.hpp"

#include <fmt/format.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "simulator/engine/machine/machine_file.hpp"
#include "simulator/registry.hpp"
#include "simulator/run.hpp"
#include "traces/base/input.hpp"
#include "traces/base/text.hpp"
#include "traces/summary.hpp"

namespace tidepool {
namespace {

constexpr std::array kColumns{
    Column{"trace", ColumnType::kText, ColumnRole::kLabel},
    Column{"trace_hash", ColumnType::kText, ColumnRole::kIdentity},
    Column{"pool", ColumnType::kText, ColumnRole::kIdentity},
    Column{"policy", ColumnType::kText, ColumnRole::kIdentity},
    Column{"options", ColumnType::kText, ColumnRole::kIdentity},
    Column{"machine", ColumnType::kText, ColumnRole::kIdentity},
    Column{"machine_hash", ColumnType::kText, ColumnRole::kIdentity},
    Column{"capacity_bytes", ColumnType::kInteger, ColumnRole::kIdentity},
    Column{"seed", ColumnType::kInteger, ColumnRole::kIdentity},
    Column{"assume", ColumnType::kText, ColumnRole::kIdentity},
    Column{"overhead_limit", ColumnType::kReal, ColumnRole::kIdentity},
    Column{"iterations", ColumnType::kInteger, ColumnRole::kIdentity},
    Column{"steady", ColumnType::kFlag, ColumnRole::kIdentity},
    Column{"count_search", ColumnType::kFlag, ColumnRole::kIdentity},
    Column{"version", ColumnType::kText, ColumnRole::kIdentity},
    Column{"outcome", ColumnType::kText},
    Column{"message", ColumnType::kText},
    Column{"addresses", ColumnType::kFlag},
    Column{"ideal_peak_bytes"},
    Column{"peak_bytes"},
    Column{"footprint_bytes"},
    Column{"fragmentation", ColumnType::kReal},
    Column{"evicting_allocations"},
    Column{"eviction_fragmentation", ColumnType::kReal},
    Column{"baseline_ns"},
    Column{"makespan_ns"},
    Column{"overhead_ratio", ColumnType::kReal},
    Column{"time_low_ratio", ColumnType::kReal},
    Column{"time_high_ratio", ColumnType::kReal},
    Column{"cycle_iterations"},
    Column{"lead_in_iterations"},
    Column{"settled", ColumnType::kFlag},
    Column{"first_iteration_ns"},
    Column{"start_on_host_bytes"},
    Column{"recompute_ns"},
    Column{"recompute_count"},
    Column{"eviction_count"},
    Column{"swap_out_bytes"},
    Column{"swap_in_bytes"},
    Column{"stall_ns.compute"},
    Column{"stall_ns.h2d"},
    Column{"stall_ns.d2h"},
    Column{"stall_ns.memory"},
    Column{"slowdown_ns"},
    Column{"host_peak_bytes"},
    Column{"storage_peak_bytes"},
    Column{"cost_evaluations"},
    Column{"search_ns", ColumnType::kInteger, ColumnRole::kWallClock},
    Column{"plan_ns", ColumnType::kInteger, ColumnRole::kWallClock},
    Column{"actions"},
    Column{"actions_per_second", ColumnType::kReal, ColumnRole::kWallClock},
    Column{"bound_ns"},
    Column{"bound_kind", ColumnType::kText},
    Column{"limited_by", ColumnType::kText},
    Column{"gap", ColumnType::kReal},
};

std::size_t index_of(std::string_view column) {
  for (std::size_t i = 0; i < kColumns.size(); ++i)
    if (kColumns[i].name == column) return i;
  throw std::logic_error{fmt::format("no column {}", column)};
}

/// a / b - less; absent if b is 0.
Value ratio(std::int64_t a, std::int64_t b, double less = 0) {
  if (b == 0) return {};
  return static_cast<double>(a) / static_cast<double>(b) - less;
}

}  // namespace

std::string machine_hash(Machine machine) {
  machine.source = "";
  const std::string numbers = machine_file(machine);
  return fmt::format("{:016x}", XXH3_64bits(numbers.data(), numbers.size()));
}

std::span<const Column> result_columns() { return kColumns; }

std::string_view to_text(ColumnRole role) {
  switch (role) {
    case ColumnRole::kIdentity:
      return "identity";
    case ColumnRole::kLabel:
      return "label";
    case ColumnRole::kResult:
      return "result";
    case ColumnRole::kWallClock:
      break;
  }
  return "wall_clock";
}

std::vector<std::string_view> moved_results(const Row& a, const Row& b) {
  constexpr std::array kSearched{"makespan_ns", "overhead_ratio", "gap"};  // contain wall time with count_search
  const bool searched = at(a, "count_search") == Value{true} || at(b, "count_search") == Value{true};
  std::vector<std::string_view> moved;
  for (std::size_t i = 0; i < kColumns.size(); ++i) {
    const Column& column = kColumns[i];
    if (column.role != ColumnRole::kResult || a.at(i) == b.at(i)) continue;
    if (searched && std::find(kSearched.begin(), kSearched.end(), column.name) != kSearched.end()) continue;
    moved.push_back(column.name);
  }
  return moved;
}

std::string value_text(const Value& value) {
  if (const auto* flag = std::get_if<bool>(&value)) return *flag ? "1" : "0";
  if (const auto* integer = std::get_if<std::int64_t>(&value)) return fmt::format("{}", *integer);
  if (const auto* real = std::get_if<double>(&value)) return fmt::format("{}", *real);
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  return "none";
}

const Value& at(const Row& row, std::string_view column) { return row.at(index_of(column)); }

RatioBetween between_of(const Row& row) {
  const auto *low = std::get_if<double>(&at(row, "time_low_ratio")),
             *high = std::get_if<double>(&at(row, "time_high_ratio"));
  return low && high ? RatioBetween{{*low, *high}} : RatioBetween{};
}

const std::string& text_at(const Row& row, std::string_view column) { return std::get<std::string>(at(row, column)); }

std::string content_key(std::string_view text) {
  const XXH128_hash_t hash = XXH3_128bits(text.data(), text.size());
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

namespace {

/// A line with the key of the content for each file that an option of the pool or a policy names, as layout(file=...).
/// @throws InputError  if a file cannot be read
std::string keys_of_files(const RunSpec& spec) {
  std::string keys;
  for (const std::string& file : files_of(spec)) keys += "\n" + content_key(read_input(file).bytes());
  return keys;
}

}  // namespace

std::string run_key(const Trace& trace, const RunSpec& spec) {
  const SpecNames names = names_of(spec);
  const std::string text =
      fmt::format("{}\n{}\n{}\n{}\n{}\n{}\n{}\n{}\n{}\n{}\n{}\n{}\n{}", trace.hash(), names.pool, names.policy,
                  names.options, machine_hash(spec.machine), spec.capacity.count(), spec.seed, spec.assume.name,
                  spec.overhead_limit.value_or(0), spec.iterations, spec.steady, spec.count_search, build_version());
  return content_key(text + keys_of_files(spec));
}

Row make_row(const NamedTrace& trace, Bytes ideal_peak, const RunSpec& spec, const Result& result,
             const std::optional<Bound>& bound) {
  const SpecNames names = names_of(spec);
  const bool has_addresses = find_pool(names.pool).has_addresses;
  Row row(kColumns.size());
  const auto set = [&](std::string_view column, Value value) { row[index_of(column)] = std::move(value); };
  set("trace", trace.name);
  set("trace_hash", trace.trace.hash());
  set("pool", names.pool);
  set("policy", names.policy);
  set("options", names.options);
  set("machine", spec.machine.name);
  set("machine_hash", machine_hash(spec.machine));
  if (spec.capacity != kNoLimit) set("capacity_bytes", spec.capacity.count());
  set("seed", static_cast<std::int64_t>(spec.seed));
  set("assume", spec.assume.name);
  if (spec.overhead_limit) set("overhead_limit", *spec.overhead_limit);
  set("iterations", std::int64_t{spec.iterations});
  set("steady", spec.steady);
  set("count_search", spec.count_search);
  set("version", std::string{build_version()});
  set("outcome", std::string{to_text(result.outcome)});
  if (!result.message.empty()) set("message", result.message);
  set("addresses", has_addresses);
  set("ideal_peak_bytes", ideal_peak.count());
  if (result.outcome == Outcome::kError) return row;

  const Totals& totals = result.totals;
  set("peak_bytes", totals.peak.count());
  if (has_addresses) {
    set("footprint_bytes", totals.footprint.count());
    set("fragmentation", ratio(totals.footprint.count(), totals.peak.count(), 1));
    if (result.evicting_allocations > 0) set("eviction_fragmentation", result.eviction_fragmentation);
  }
  set("evicting_allocations", result.evicting_allocations);
  set("baseline_ns", result.baseline.count());
  const Nanos makespan = totals.makespan + result.search.value_or(Nanos{});
  set("makespan_ns", makespan.count());
  set("overhead_ratio", ratio(makespan.count(), result.baseline.count()));
  if (result.outcome == Outcome::kOk && !result.search && !result.realised.actions.empty())
    if (const RatioBetween between = ratios_of_times(trace.trace, spec, result.realised)) {
      set("time_low_ratio", between->first);
      set("time_high_ratio", between->second);
    }
  if (spec.steady && result.outcome == Outcome::kOk) {
    set("cycle_iterations", std::int64_t{result.cycle.iterations});
    set("lead_in_iterations", std::int64_t{result.cycle.lead_in});
    set("settled", result.cycle.settled);
  }
  if (result.outcome == Outcome::kOk) set("first_iteration_ns", result.cycle.first_iteration.count());
  set("start_on_host_bytes", result.cycle.start_on_host.count());
  set("recompute_ns", totals.recompute.count());
  set("recompute_count", totals.recompute_count);
  set("eviction_count", totals.eviction_count);
  set("swap_out_bytes", totals.swap_out.count());
  set("swap_in_bytes", totals.swap_in.count());
  set("stall_ns.compute", totals.stall.compute.count());
  set("stall_ns.h2d", totals.stall.h2d.count());
  set("stall_ns.d2h", totals.stall.d2h.count());
  set("stall_ns.memory", totals.stall.memory.count());
  set("slowdown_ns", totals.slowdown.count());
  set("host_peak_bytes", totals.host_peak.count());
  set("storage_peak_bytes", totals.storage_peak.count());
  set("cost_evaluations", result.cost_evaluations);
  if (result.search) set("search_ns", result.search->count());
  set("plan_ns", result.plan_time.count());
  set("actions", totals.actions);
  if (result.plan_time > Nanos{})
    set("actions_per_second",
        static_cast<double>(totals.actions) * 1e9 / static_cast<double>(result.plan_time.count()));
  // The bound holds for the mean of a whole cycle. The mean of a part of a cycle may be smaller than the bound.
  if (!bound || (!result.cycle.settled && bound->makespan > totals.makespan)) return row;
  set("bound_kind", bound->name);
  set("limited_by", std::string{to_text(bound->limited_by)});
  if (!bound->feasible) return row;
  set("bound_ns", bound->makespan.count());
  if (result.outcome == Outcome::kOk) set("gap", ratio(makespan.count(), bound->makespan.count(), 1));
  return row;
}

bool needs_plan(const Trace& trace) { return !error_of_times(trace).empty(); }

Result try_simulate(const Trace& trace, const RunSpec& spec, bool keep_plan) {
  return or_error([&] { return simulate(trace, spec, keep_plan); });
}

nlohmann::ordered_json to_json_value(const Value& value) {
  return std::visit(
      [](const auto& held) -> nlohmann::ordered_json {
        if constexpr (std::is_same_v<std::decay_t<decltype(held)>, std::monostate>)
          return nullptr;
        else
          return held;
      },
      value);
}

nlohmann::ordered_json to_json_object(const Row& row) {
  nlohmann::ordered_json object;
  for (std::size_t i = 0; i < row.size(); ++i) {
    if (std::holds_alternative<std::monostate>(row[i])) continue;
    const std::string name{result_columns()[i].name};
    const std::size_t dot = name.find('.');
    if (dot == std::string::npos)
      object[name] = to_json_value(row[i]);
    else
      object[name.substr(0, dot)][name.substr(dot + 1)] = to_json_value(row[i]);
  }
  return object;
}

std::string to_json(const Row& row) { return json_text(to_json_object(row)); }

}  // namespace tidepool
