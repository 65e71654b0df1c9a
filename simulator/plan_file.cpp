#include "simulator/plan_file.hpp"

#include <fmt/format.h>
#include <zstd.h>

#include <array>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "simulator/ordered_step.hpp"
#include "traces/base/error.hpp"
#include "traces/base/text.hpp"
#include "traces/content.hpp"
#include "traces/jsonl/json_lines.hpp"
#include "traces/names.hpp"

namespace tidepool {
namespace {

constexpr std::array<std::string_view, 14> kVerbs{"reserve", "release", "map",   "unmap", "alloc",
                                                  "scratch", "free",    "run",   "copy",  "swap_out",
                                                  "swap_in", "drop",    "await", "next"};

}  // namespace

template <>
std::span<const std::string_view> words<Verb>() {
  return kVerbs;
}

namespace {

constexpr std::int64_t kFormat = 1, kFormatWithOrder = 2;
constexpr std::size_t kMostOrdered = 100'000'000;  // ops of an order
constexpr std::size_t kFirstBytes = 4096;
constexpr std::int64_t kFarthest = std::int64_t{1} << 62;

std::string_view subject_key(Verb verb) {
  switch (verb) {
    case Verb::kReserve:
    case Verb::kRelease:
    case Verb::kUnmap:
      return {};
    case Verb::kMap:
      return "page";
    case Verb::kRun:
      return "op";
    case Verb::kNext:
      return "iteration";
    default:
      return "version";
  }
}

bool has_pages(Verb verb) { return verb == Verb::kReserve || verb == Verb::kRelease; }

bool gives_place(Verb verb) {
  return has_pages(verb) || verb == Verb::kMap || verb == Verb::kUnmap || verb == Verb::kAlloc ||
         verb == Verb::kScratch || verb == Verb::kSwapIn;
}

nlohmann::ordered_json to_json(const Machine& machine) {
  nlohmann::ordered_json json{{"name", machine.name},
                              {"capacity_bytes", machine.capacity.count()},
                              {"h2d_bytes_per_second", machine.h2d.rate.count()},
                              {"h2d_latency_ns", machine.h2d.latency.count()},
                              {"d2h_bytes_per_second", machine.d2h.rate.count()},
                              {"d2h_latency_ns", machine.d2h.latency.count()},
                              {"device_copy_bytes_per_second", machine.device_copy.count()},
                              {"segment_alloc_ns", machine.segment_alloc.count()},
                              {"segment_free_ns", machine.segment_free.count()},
                              {"page_map_ns", machine.page_map.count()},
                              {"page_unmap_ns", machine.page_unmap.count()},
                              {"source", machine.source}};
  const auto add_link = [&](const std::string& name, const Link& link) {
    if (link.duplex_ppm != Link{}.duplex_ppm) json[name + "_duplex_ppm"] = link.duplex_ppm;
    if (link.slowdown_ppm != 0) json[name + "_slowdown_ppm"] = link.slowdown_ppm;
    for (const TimedSize& each : link.times) json[name + "_times"].push_back({each.size.count(), each.time.count()});
  };
  add_link("h2d", machine.h2d);
  add_link("d2h", machine.d2h);
  const auto add = [&](const char* key, std::int64_t value, std::int64_t usual = 0) {
    if (value != usual) json[key] = value;
  };
  add("host_capacity_bytes", machine.host.capacity.count(), HostMemory{}.capacity.count());
  if (machine.host.powers_of_two) json["host_powers_of_two"] = true;
  add("pin_bytes_per_second", machine.host.pin_rate.count());
  add("pin_latency_ns", machine.host.pin_latency.count());
  add("launch_ns", machine.launch.count());
  add("submit_ns", machine.submit.count());
  add("chunk_bytes", machine.chunk.count());
  if (machine.storage.capacity == Bytes{}) return json;
  json["storage_bytes"] = machine.storage.capacity.count();
  for (const auto& [name, link] :
       {std::pair{"storage_write", machine.storage.write}, std::pair{"storage_read", machine.storage.read}}) {
    json[name + std::string{"_bytes_per_second"}] = link.rate.count();
    json[name + std::string{"_latency_ns"}] = link.latency.count();
    add_link(name, link);
  }
  return json;
}

/// Reads the measured copies of a link whose latency has been read.
void read_times(JsonFields& fields, std::string_view key, Link& link) {
  TimedSize last{Bytes{}, link.latency};
  fields.each_row(key, [&](const JsonRow& row) {
    last = {Bytes{row.integer(0, last.size.count() + 1, kFarthest)},
            Nanos{row.integer(1, last.time.count() + 1, kFarthest)}};
    link.times.push_back(last);
  });
}

/// Reads the members of a link other than rate and latency.
void read_link(JsonFields& fields, std::string_view duplex_key, std::string_view slowdown_key,
               std::string_view times_key, Link& link) {
  constexpr std::int64_t kFull = 1'000'000;
  link.duplex_ppm = fields.integer(duplex_key, kFull, 1, kFull);
  link.slowdown_ppm = fields.integer(slowdown_key, 0, 0, 10 * kFull);
  read_times(fields, times_key, link);
}

Machine read_machine(JsonFields& fields) {
  Machine machine;
  const auto rate = [&](std::string_view key) { return BytesPerSecond{fields.required_integer(key, 1)}; };
  const auto nanos = [&](std::string_view key) { return Nanos{fields.required_integer(key, 0, kFarthest)}; };
  machine.name = fields.text("name", "");
  machine.capacity = Bytes{fields.required_integer("capacity_bytes")};
  machine.h2d = {rate("h2d_bytes_per_second"), nanos("h2d_latency_ns")};
  machine.d2h = {rate("d2h_bytes_per_second"), nanos("d2h_latency_ns")};
  read_link(fields, "h2d_duplex_ppm", "h2d_slowdown_ppm", "h2d_times", machine.h2d);
  read_link(fields, "d2h_duplex_ppm", "d2h_slowdown_ppm", "d2h_times", machine.d2h);
  machine.host.capacity = Bytes{fields.integer("host_capacity_bytes", kFarthest, 0, kFarthest)};
  machine.host.powers_of_two = fields.flag("host_powers_of_two", false);
  machine.host.pin_rate = BytesPerSecond{fields.integer("pin_bytes_per_second", 0)};
  machine.host.pin_latency = Nanos{fields.integer("pin_latency_ns", 0, 0, kFarthest)};
  machine.launch = Nanos{fields.integer("launch_ns", 0, 0, kFarthest)};
  machine.submit = Nanos{fields.integer("submit_ns", 0, 0, kFarthest)};
  machine.chunk = Bytes{fields.integer("chunk_bytes", 0, 0, kFarthest)};
  machine.storage.capacity = Bytes{fields.integer("storage_bytes", 0, 0, kFarthest)};
  if (machine.storage.capacity > Bytes{}) {
    machine.storage.write = {rate("storage_write_bytes_per_second"), nanos("storage_write_latency_ns")};
    machine.storage.read = {rate("storage_read_bytes_per_second"), nanos("storage_read_latency_ns")};
    read_times(fields, "storage_write_times", machine.storage.write);
    read_times(fields, "storage_read_times", machine.storage.read);
  }
  machine.device_copy = rate("device_copy_bytes_per_second");
  machine.segment_alloc = nanos("segment_alloc_ns");
  machine.segment_free = nanos("segment_free_ns");
  machine.page_map = nanos("page_map_ns");
  machine.page_unmap = nanos("page_unmap_ns");
  machine.source = fields.text("source", "");
  return machine;
}

nlohmann::ordered_json to_json(const Totals& totals) {
  return {{"makespan_ns", totals.makespan.count()},
          {"peak_bytes", totals.peak.count()},
          {"footprint_bytes", totals.footprint.count()},
          {"recompute_ns", totals.recompute.count()},
          {"recompute_count", totals.recompute_count},
          {"eviction_count", totals.eviction_count},
          {"swap_out_bytes", totals.swap_out.count()},
          {"swap_in_bytes", totals.swap_in.count()},
          {"stall_compute_ns", totals.stall.compute.count()},
          {"stall_h2d_ns", totals.stall.h2d.count()},
          {"stall_d2h_ns", totals.stall.d2h.count()},
          {"stall_memory_ns", totals.stall.memory.count()},
          {"slowdown_ns", totals.slowdown.count()},
          {"host_peak_bytes", totals.host_peak.count()},
          {"storage_peak_bytes", totals.storage_peak.count()},
          {"actions", totals.actions}};
}

Totals read_totals(JsonFields& fields) {
  Totals totals;
  totals.makespan = Nanos{fields.required_integer("makespan_ns")};
  totals.peak = Bytes{fields.required_integer("peak_bytes")};
  totals.footprint = Bytes{fields.required_integer("footprint_bytes")};
  totals.recompute = Nanos{fields.integer("recompute_ns", 0)};
  totals.recompute_count = fields.integer("recompute_count", 0);
  totals.eviction_count = fields.integer("eviction_count", 0);
  totals.swap_out = Bytes{fields.integer("swap_out_bytes", 0)};
  totals.swap_in = Bytes{fields.integer("swap_in_bytes", 0)};
  totals.stall.compute = Nanos{fields.integer("stall_compute_ns", 0)};
  totals.stall.h2d = Nanos{fields.integer("stall_h2d_ns", 0)};
  totals.stall.d2h = Nanos{fields.integer("stall_d2h_ns", 0)};
  totals.stall.memory = Nanos{fields.integer("stall_memory_ns", 0)};
  totals.slowdown = Nanos{fields.integer("slowdown_ns", 0)};
  totals.host_peak = Bytes{fields.integer("host_peak_bytes", 0)};
  totals.storage_peak = Bytes{fields.integer("storage_peak_bytes", 0)};
  totals.actions = fields.integer("actions", 0);
  return totals;
}

/// The ops of an order as ranges of successive ops: the first op and the number of ops.
nlohmann::ordered_json to_json(const StepOrder& order) {
  nlohmann::ordered_json runs = nlohmann::ordered_json::array();
  for (std::size_t first = 0, last = 0; first < order.ops.size(); first = last) {
    for (last = first + 1; last < order.ops.size() && order.ops[last] == order.ops[last - 1] + 1;) ++last;
    runs.push_back({order.ops[first], last - first});
  }
  return {{"rule", order.rule}, {"lists_apart", order.apart}, {"ops", std::move(runs)}};
}

nlohmann::ordered_json header(const PlanFile& file) {
  const RunSpec& spec = file.spec;
  nlohmann::ordered_json json{{"tidepool_plan", file.plan.order ? kFormatWithOrder : kFormat},
                              {"version", TIDEPOOL_VERSION},
                              {"trace_hash", file.trace_hash},
                              {"pool", spec.pool.text},
                              {"policy", spec.policy.text}};
  if (spec.capacity != kNoLimit) json["capacity_bytes"] = spec.capacity.count();
  json["machine"] = to_json(spec.machine);
  json["seed"] = std::to_string(spec.seed);
  if (!spec.assume.name.empty()) json["assume"] = spec.assume.name;
  if (spec.overhead_limit) json["overhead_limit"] = fmt::format("{}", *spec.overhead_limit);
  if (spec.iterations != 1) json["iterations"] = spec.iterations;
  if (spec.steady) json["steady"] = true;
  if (file.plan.cycle != 1) json["cycle_iterations"] = file.plan.cycle;
  if (file.plan.order) json["order"] = to_json(*file.plan.order);
  json["predicted"] = to_json(file.predicted);
  json["actions"] = file.plan.actions.size();
  return json;
}

/// Reads a text that must be one finite number of at least 0 and nothing else.
double read_number(std::string_view key, std::string_view text) {
  const std::string copy{text};
  char* end = nullptr;
  const double value = std::strtod(copy.c_str(), &end);
  if (copy.empty() || *end != '\0' || !(value >= 0) || !std::isfinite(value))
    throw InputError{fmt::format("'{}' is \"{}\"; expected a finite number of at least 0", key, copy)};
  return value;
}

std::uint64_t read_seed(std::string_view text) {
  std::uint64_t seed = 0;
  for (const char c : text) {
    if (c < '0' || c > '9' || __builtin_mul_overflow(seed, std::uint64_t{10}, &seed) ||
        __builtin_add_overflow(seed, static_cast<std::uint64_t>(c - '0'), &seed))
      throw InputError{fmt::format("'seed' is \"{}\"; expected 0 to 18446744073709551615", text)};
  }
  return seed;
}

StepOrder read_order(JsonFields& fields) {
  constexpr std::int64_t kLastOp = std::numeric_limits<std::uint32_t>::max() - 1;
  StepOrder order{.rule = std::string{fields.text("rule", "")}, .apart = fields.flag("lists_apart", false), .ops = {}};
  fields.each_row("ops", [&](const JsonRow& row) {
    const std::int64_t first = row.integer(0, 0, kLastOp), count = row.integer(1, 1, kLastOp - first + 1);
    if (order.ops.size() + static_cast<std::size_t>(count) > kMostOrdered)
      throw InputError{fmt::format("'ops' of the order are more than {}", kMostOrdered)};
    for (std::int64_t i = 0; i < count; ++i) order.ops.push_back(static_cast<std::uint32_t>(first + i));
  });
  return order;
}

/// @return  the number of actions that follow
std::size_t read_header(JsonFields& fields, const Trace* trace, PlanFile& file) {
  const std::int64_t format = fields.required_integer("tidepool_plan");
  if (format != kFormat && format != kFormatWithOrder)
    throw InputError{
        fmt::format("plan format {}; this tidepool reads formats {} and {}", format, kFormat, kFormatWithOrder)};
  fields.text("version", "");
  file.trace_hash = fields.text("trace_hash", "");
  if (trace != nullptr && file.trace_hash != trace->hash())
    throw InputError{fmt::format("made for trace {}; expected the trace given, {}", file.trace_hash, trace->hash())};
  RunSpec& spec = file.spec;
  if (fields.has("pool")) spec.pool = std::string{fields.text("pool", "")};
  if (fields.has("policy")) spec.policy = std::string{fields.text("policy", "")};
  spec.capacity = Bytes{fields.integer("capacity_bytes", kNoLimit.count())};
  fields.nested("machine", [&](JsonFields& inner) { spec.machine = read_machine(inner); });
  spec.seed = read_seed(fields.text("seed", "1"));
  spec.assume = Assumptions::find(std::string{fields.text("assume", "")});
  spec.overhead_limit.reset();
  if (fields.has("overhead_limit"))
    spec.overhead_limit = read_number("overhead_limit", fields.text("overhead_limit", ""));
  spec.iterations = static_cast<int>(fields.integer("iterations", 1, 1, std::numeric_limits<int>::max()));
  spec.steady = fields.flag("steady", false);
  file.plan.cycle = static_cast<int>(fields.integer("cycle_iterations", 1, 1, std::numeric_limits<int>::max()));
  if (format == kFormatWithOrder)
    fields.nested("order", [&](JsonFields& inner) { file.plan.order = read_order(inner); });
  fields.nested("predicted", [&](JsonFields& inner) { file.predicted = read_totals(inner); });
  return static_cast<std::size_t>(fields.required_integer("actions"));
}

Action read_action(JsonFields& fields, const Trace* trace) {
  constexpr std::int64_t kAnyId = std::numeric_limits<std::uint32_t>::max() - 1;
  const auto last = [&](std::size_t count) { return trace == nullptr ? kAnyId : static_cast<std::int64_t>(count) - 1; };
  const std::int64_t last_op = last(trace == nullptr ? 0 : trace->ops().size());
  Action action;
  if (!fields.has("do")) throw InputError{"no 'do'; it is required"};
  action.verb = fields.word<Verb>("do", Verb::kRun);
  if (const std::string_view key = subject_key(action.verb); !key.empty()) {
    const std::int64_t most = key == "op"        ? last_op
                              : key == "version" ? last(trace == nullptr ? 0 : trace->versions().size())
                                                 : kAnyId;
    action.subject = static_cast<std::uint32_t>(fields.required_integer(key, 0, most));
    if (trace != nullptr && key == "version" && trace->version(VersionId{action.subject}).kind == VersionKind::kView)
      throw InputError{fmt::format("version {} is a view; expected the version it is a view of, {}", action.subject,
                                   trace->root(VersionId{action.subject}).value())};
  }
  if (has_pages(action.verb)) action.subject = static_cast<std::uint32_t>(fields.integer("pages", 0, 0, kAnyId));
  if (fields.has("before"))
    action.before = OpId{static_cast<std::size_t>(fields.required_integer("before", 0, last_op))};
  const bool place = gives_place(action.verb);
  action.offset = Bytes{place ? fields.required_integer("offset_bytes", -1, kFarthest)
                              : fields.integer("offset_bytes", 0, -1, kFarthest)};
  action.size = Bytes{place ? fields.required_integer("size_bytes", 0, kFarthest)
                            : fields.integer("size_bytes", 0, 0, kFarthest)};
  return action;
}

/// The step in the plan's order. @throws InputError  if the order does not fit the trace, as PlannedStep refuses it
const PlannedStep& planned(const Trace& trace, const Plan& plan, std::optional<PlannedStep>& step) {
  try {
    return step.emplace(trace, plan);
  } catch (const PlanError& error) {
    throw InputError{error.what()};
  }
}

}  // namespace

bool is_plan_file(const std::string& path) {
  if (path.ends_with(".plan.zst")) return true;
  constexpr std::string_view kHead = "{\"tidepool_plan\"";
  std::string head(kHead.size(), '\0');
  std::ifstream{path, std::ios::binary}.read(head.data(), static_cast<std::streamsize>(head.size()));
  return head == kHead;
}

std::string plan_text(const PlanFile& file) {
  fmt::memory_buffer text;
  const auto out = std::back_inserter(text);
  fmt::format_to(out, "{}\n", json_text(header(file)));
  for (const Action& action : file.plan.actions) {
    fmt::format_to(out, "{{\"do\":\"{}\"", word(action.verb));
    if (const std::string_view key = subject_key(action.verb); !key.empty())
      fmt::format_to(out, ",\"{}\":{}", key, action.subject);
    if (has_pages(action.verb) && action.subject != 0) fmt::format_to(out, ",\"pages\":{}", action.subject);
    if (action.before.valid()) fmt::format_to(out, ",\"before\":{}", action.before.value());
    const bool place = gives_place(action.verb);
    if (place || action.offset != Bytes{}) fmt::format_to(out, ",\"offset_bytes\":{}", action.offset.count());
    if (place || action.size != Bytes{}) fmt::format_to(out, ",\"size_bytes\":{}", action.size.count());
    fmt::format_to(out, "}}\n");
  }
  return fmt::to_string(text);
}

void write_plan(const std::string& path, const PlanFile& file) {
  std::string text = plan_text(file);
  if (path.ends_with(".zst")) {
    std::string packed(ZSTD_compressBound(text.size()), '\0');
    const std::size_t size = ZSTD_compress(packed.data(), packed.size(), text.data(), text.size(), ZSTD_CLEVEL_DEFAULT);
    if (ZSTD_isError(size) != 0) throw InputError{fmt::format("{}: {}", path, ZSTD_getErrorName(size))};
    packed.resize(size);
    text = std::move(packed);
  }
  write_file(path, text);
}

PlanFile parse_plan(const Input& input, const Trace* trace) {
  if (const std::string_view what = not_text(input.bytes().substr(0, kFirstBytes)); !what.empty())
    throw InputError{fmt::format("{}: {}; expected a plan", input.path(), what)};
  PlanFile file;
  std::size_t expected = 0;
  bool begun = false;
  std::optional<PlannedStep> step;
  for_each_json_line(input, [&](JsonFields& fields) {
    if (!begun) {
      expected = read_header(fields, trace, file);
      if (trace != nullptr) trace = &planned(*trace, file.plan, step).trace();
      begun = true;
    } else if (file.plan.actions.size() == expected) {
      throw InputError{fmt::format("one action more than the {} that the first line says", expected)};
    } else {
      file.plan.actions.push_back(read_action(fields, trace));
    }
  });
  if (!begun) throw InputError{fmt::format("{}: has empty lines only; expected a plan", input.path())};
  if (file.plan.actions.size() != expected)
    throw InputError{fmt::format("{}: ends after {} of {} actions; expected a complete file", input.path(),
                                 file.plan.actions.size(), expected)};
  return file;
}

PlanFile read_plan(const std::string& path, const Trace* trace) { return parse_plan(read_input(path), trace); }

}  // namespace tidepool
