// tidepool explain: live buffers at the peak or at an op, by module and kind, and ways to lower the peak.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <memory>
#include <nlohmann/json.hpp>

#include "simulator/studies/fit/stated_memory.hpp"
#include "traces/base/command_line.hpp"
#include "traces/base/refuse.hpp"
#include "traces/base/text.hpp"
#include "traces/names.hpp"
#include "traces/program_names.hpp"
#include "traces/step/event_names.hpp"
#include "traces/step/growth.hpp"
#include "traces/step/holders.hpp"

namespace tidepool {
namespace {

constexpr std::int64_t kWorthSaying = 1000;  // a remedy is printed if it saves at least 1/1000 of the peak

struct ExplainArguments {
  std::string trace, at;
  std::size_t show = 15, depth = 0;
  bool peak = false, growth = false, json = false;
};

using Json = nlohmann::ordered_json;

/// Buffers that could leave the device while no op uses them, and the peak without them.
struct Remedy {
  std::string kind;  ///< kind of the absent buffers; "any": all kinds
  Lowered lowered;
};

/// The data of one answer, for both forms of output.
struct Explanation {
  const Trace& trace;
  EventNames events;
  ModuleNames names{trace};
  Instant instant;
  std::vector<Remedy> remedies;  ///< the lowest peak first
};

OpId op_named(const Trace& trace, const std::string& text) {
  std::size_t op = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), op);
  if (trace.ops().empty()) refuse("--at: the trace has no ops; expected --peak");
  if (error != std::errc{} || end != text.data() + text.size() || op >= trace.ops().size())
    refuse("--at: '{}' is no op of the trace; expected a number from 0 to {}", text, trace.ops().size() - 1);
  return OpId{op};
}

std::vector<Remedy> remedies_for(const Trace& trace, const Instant& instant) {
  std::vector<Remedy> remedies;
  if (trace.ops().empty()) return remedies;
  const auto add = [&](std::string kind, const std::vector<LiveBuffer>& gone) {
    const Lowered lowered = lowered_peak(trace, instant, gone);
    if (lowered.absent > Bytes{} && (trace.ideal_peak() - lowered.peak) * kWorthSaying >= trace.ideal_peak())
      remedies.push_back({std::move(kind), lowered});
  };
  for (std::size_t i = 0; i < words<BufferKind>().size(); ++i) {
    const auto kind = static_cast<BufferKind>(i);
    std::vector<LiveBuffer> gone;
    for (const LiveBuffer& live : instant.buffers)
      if (trace.buffer(live.buffer).kind == kind) gone.push_back(live);
    add(std::string{word(kind)}, gone);
  }
  add("any", instant.buffers);
  std::stable_sort(remedies.begin(), remedies.end(),
                   [](const Remedy& a, const Remedy& b) { return a.lowered.peak < b.lowered.peak; });
  return remedies;
}

double share(Bytes part, Bytes whole) {
  return whole == Bytes{} ? 0 : static_cast<double>(part.count()) / static_cast<double>(whole.count());
}

/// "op 12, aten::mm (blocks.0.mlp.fc1, model.py:88, forward)".
std::string op_and_phase(const Trace& trace, OpId id) {
  const Op& op = trace.op(id);
  std::string where = place_text(trace, id);
  if (op.phase != Phase::kUnknown) where += fmt::format("{}{}", where.empty() ? "" : ", ", word(op.phase));
  return fmt::format("op {}, {}{}", id.index(), trace.text(op.name), where.empty() ? "" : " (" + where + ")");
}

Json op_json(const Trace& trace, OpId id) {
  if (!id.valid()) return nullptr;
  const Op& op = trace.op(id);
  return {{"op", id.index()},
          {"name", trace.text(op.name)},
          {"module", trace.text(op.module)},
          {"line", trace.text(op.line)},
          {"phase", word(op.phase)}};
}

Json event_json(const Explanation& found) {
  if (found.instant.step == 0) return nullptr;
  return {{"event", found.events.number(found.instant.step - 1)}, {"events", found.events.count()}};
}

Json holder_json(const Holder& holder, Bytes live) {
  return {{"module", holder.module},       {"named_by", word(holder.named_by)},  {"kind", word(holder.kind)},
          {"bytes", holder.bytes.count()}, {"share", share(holder.bytes, live)}, {"buffers", holder.buffers}};
}

void print_json(const ExplainArguments& arguments, const Explanation& found) {
  const Trace& trace = found.trace;
  const Instant& instant = found.instant;
  Json object{{"trace", arguments.trace},
              {"trace_hash", trace.hash()},
              {"at", trace.ops().empty() ? event_json(found) : op_json(trace, instant.op)},
              {"live_bytes", instant.live.count()},
              {"in_use_bytes", instant.in_use.count()},
              {"never_used_again_bytes", never_used_again(trace, instant).count()},
              {"ideal_peak_bytes", trace.ideal_peak().count()}};
  for (const char* list : {"kinds", "holders", "buffers", "lowering"}) object[list] = Json::array();
  for (const Holder& kind : kinds_of(trace, instant.buffers))
    object["kinds"].push_back({{"kind", word(kind.kind)},
                               {"bytes", kind.bytes.count()},
                               {"share", share(kind.bytes, instant.live)},
                               {"buffers", kind.buffers}});
  for (const Holder& holder : holders_of(trace, found.names, instant.buffers, arguments.depth))
    object["holders"].push_back(holder_json(holder, instant.live));
  const std::vector<OpId> is_for = ops_they_are_for(trace);
  for (const LiveBuffer& live : instant.buffers) {
    const Buffer& buffer = trace.buffer(live.buffer);
    object["buffers"].push_back({{"buffer", live.buffer.index()},
                                 {"name", trace.text(buffer.name)},
                                 {"module", found.names.of(live.buffer).text},
                                 {"line", line_of(trace, live.buffer, is_for[live.buffer.index()])},
                                 {"kind", word(buffer.kind)},
                                 {"bytes", buffer.size.count()},
                                 {"in_use", live.in_use},
                                 {"since", op_json(trace, live.since)},
                                 {"next_use", op_json(trace, live.next_use)},
                                 {"until", op_json(trace, live.until)}});
  }
  for (const Remedy& remedy : found.remedies)
    object["lowering"].push_back({{"kind", remedy.kind},
                                  {"absent_bytes", remedy.lowered.absent.count()},
                                  {"peak_bytes", remedy.lowered.peak.count()},
                                  {"held_by", op_json(trace, remedy.lowered.op)}});
  object["missing"] = missing_names(trace);
  fmt::print("{}\n", json_text(object));
}

void print_holders(const ExplainArguments& arguments, const Explanation& found) {
  const Bytes live = found.instant.live;
  fmt::print("\nby kind\n");
  for (const Holder& kind : kinds_of(found.trace, found.instant.buffers))
    fmt::print("  {:>10}  {:>5.1f} %  {}, {} buffer{}\n", to_text(kind.bytes), share(kind.bytes, live) * 100,
               word(kind.kind), grouped(kind.buffers), kind.buffers == 1 ? "" : "s");
  const std::vector<Holder> all = holders_of(found.trace, found.names, found.instant.buffers, arguments.depth);
  const std::vector<Holder> rows = arguments.depth == 0 ? joined_holders(all, arguments.show) : all;
  const std::size_t most = arguments.depth == 0 ? 2 * arguments.show : arguments.show;
  fmt::print("\nby module and kind\n");
  Bytes rest;
  std::int64_t others = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Holder& holder = rows[i];
    if (i >= most) {
      rest += holder.bytes;
      others += holder.joined;
      continue;
    }
    fmt::print("  {:>10}  {:>5.1f} %  {:<16} {}\n", to_text(holder.bytes), share(holder.bytes, live) * 100,
               word(holder.kind), holder_text(holder));
  }
  if (rest > Bytes{})
    fmt::print("  {:>10}  {:>5.1f} %  {} others (--show {})\n", to_text(rest), share(rest, live) * 100, grouped(others),
               rows.size());
}

/// Since when a buffer exists: "op 12, aten::mm (...)", "event 2 by train.py:12".
std::string since_text(const Explanation& found, const LiveBuffer& live) {
  const Trace& trace = found.trace;
  if (live.since.valid()) return op_and_phase(trace, live.since);
  const std::string_view line = line_of(trace, live.buffer, op_it_is_for(trace, live.buffer));
  const std::string by = line.empty() ? "" : fmt::format(" by {}", line);
  if (trace.buffer(live.buffer).born_before) return "before the trace began" + (line.empty() ? "" : ", allocated" + by);
  if (trace.ops().empty()) return fmt::format("event {}{}", found.events.number(live.allocated), by);
  return fmt::format("it was allocated{}; no op used it yet", by);
}

/// When a buffer is used next, and until when it exists.
std::string until_text(const Explanation& found, const LiveBuffer& live) {
  const Trace& trace = found.trace;
  const bool freed = live.freed != LiveBuffer::kNone;
  if (trace.ops().empty())
    return freed ? fmt::format("freed by event {}", found.events.number(live.freed))
                 : "it is still there when the trace ends";
  const std::string next = live.in_use             ? "in use now"
                           : live.next_use.valid() ? "next used by " + op_and_phase(trace, live.next_use)
                                                   : "not used any more";
  return next + "; " +
         (!freed               ? "it is still there when the trace ends"
          : live.until.valid() ? "until " + op_and_phase(trace, live.until)
                               : "freed before the first op");
}

void print_buffers(const ExplainArguments& arguments, const Explanation& found) {
  const Trace& trace = found.trace;
  fmt::print("\nlargest buffers\n");
  for (std::size_t i = 0; i < std::min(arguments.show, found.instant.buffers.size()); ++i) {
    const LiveBuffer& live = found.instant.buffers[i];
    const Buffer& buffer = trace.buffer(live.buffer);
    const std::string name = !trace.text(buffer.name).empty() ? std::string{trace.text(buffer.name)}
                             : buffer.kind == BufferKind::kUnknown
                                 ? fmt::format("buffer {}", live.buffer.index())
                                 : fmt::format("{} (buffer {})", word(buffer.kind), live.buffer.index());
    fmt::print("  {:>10}  {}\n", to_text(buffer.size), name);
    fmt::print("              since {}\n              {}\n", since_text(found, live), until_text(found, live));
  }
}

/// Whether the trace says of its ops that they are forward ones, and has no backward op at or after the instant.
bool no_backward_follows(const Explanation& found) {
  const auto of = [](Phase phase) { return [phase](const Op& op) { return op.phase == phase; }; };
  const auto later = found.trace.ops().subspan(found.instant.op.valid() ? found.instant.op.index() : 0);
  return std::ranges::any_of(found.trace.ops(), of(Phase::kForward)) &&
         std::ranges::none_of(later, of(Phase::kBackward));
}

void print_lowering(const Explanation& found) {
  if (found.trace.ops().empty()) return;
  const Instant& instant = found.instant;
  if (found.trace.data().uses.empty()) {
    fmt::print("\nlowering the peak\n  no op says which buffers it uses; `tidepool record --torch` records it\n");
    return;
  }
  const Bytes unused = never_used_again(found.trace, instant);
  fmt::print("\nlowering the peak\n  {} are in use here and cannot go; {} wait for a later use\n",
             to_text(instant.in_use), to_text(instant.live - instant.in_use - unused));
  if (unused * kWorthSaying >= instant.live)
    fmt::print("  {} are never used again{}\n", to_text(unused),
               no_backward_follows(found) ? ": no backward follows (is torch.no_grad() missing?)" : "");
  if (found.remedies.empty()) fmt::print("  no kind of them lowers the peak by 0.1 %: another instant has as much\n");
  for (const Remedy& remedy : found.remedies) {
    const Lowered& to = remedy.lowered;
    fmt::print("  {:>10}  if the {} of {} that wait were away; then {} holds the peak\n", to_text(to.peak),
               to_text(to.absent), remedy.kind == "any" ? "all kinds" : "kind " + remedy.kind,
               to.op.valid() ? op_and_phase(found.trace, to.op) : "the end of the trace");
  }
}

void print_text(const ExplainArguments& arguments, const Explanation& found) {
  const Instant& instant = found.instant;
  fmt::print("{}: {} alive {}{}\n", printable(arguments.trace), to_text(instant.live),
             arguments.at.empty() ? "at the peak, " : "at ",
             instant.op.valid()          ? op_and_phase(found.trace, instant.op)
             : found.trace.ops().empty() ? found.events.after(instant.step)
                                         : "where the trace ends");
  if (const std::string outside = outside_text(found.trace); !outside.empty()) fmt::print("{}\n", outside);
  if (!arguments.at.empty())
    fmt::print("{:.1f} % of the peak of {}\n", share(instant.live, found.trace.ideal_peak()) * 100,
               to_text(found.trace.ideal_peak()));
  print_holders(arguments, found);
  print_buffers(arguments, found);
  print_lowering(found);
}

/// What a part of the trace is called.
std::string part_name(const Trace& trace, const Growth& growth) {
  if (growth.by_iteration) return "step";
  const auto begin = trace.events().begin();
  const auto allocations = std::count_if(begin + static_cast<std::ptrdiff_t>(growth.bounds[0]),
                                         begin + static_cast<std::ptrdiff_t>(growth.bounds[1]),
                                         [](const Event& event) { return event.kind == EventKind::kAlloc; });
  return fmt::format("series of {} allocations", grouped(allocations));
}

/// "40 MiB a step", of what grew over all steps.
Bytes each(Bytes bytes, const Growth& growth) { return bytes / static_cast<std::int64_t>(growth.times()); }

Json growth_json(const ExplainArguments& arguments, const Explanation& found, const Growth& growth) {
  const Trace& trace = found.trace;
  Json object{{"trace", arguments.trace},     {"trace_hash", trace.hash()},   {"part", part_name(trace, growth)},
              {"first_part", growth.first()}, {"least_bytes", Json::array()}, {"growth", Json::array()}};
  for (const Bytes least : growth.least) object["least_bytes"].push_back(least.count());
  for (const GrowthRow& row : growth.rows)
    object["growth"].push_back({{"cause", row.cause},
                                {"kind", word(row.kind)},
                                {"bytes", row.bytes.count()},
                                {"grew", row.grew},
                                {"kept", row.kept},
                                {"newest", row.newest.valid() ? Json(row.newest.index()) : Json(nullptr)}});
  return object;
}

void print_growth(const ExplainArguments& arguments, const Explanation& found, const Growth& growth) {
  const std::string part = part_name(found.trace, growth), noun = growth.by_iteration ? "step" : "series";
  const Bytes first = growth.least[growth.first()], last = growth.least.back();
  if (growth.rows.empty()) {
    fmt::print("{}: nothing grows: {} {} has never less than {}, {} {} never less than {}\n",
               printable(arguments.trace), noun, growth.first(), to_text(first), noun, growth.parts() - 1,
               to_text(last));
    return;
  }
  const std::string& cause = growth.rows.front().cause;
  fmt::print("{}: {}\n{} {} has never less than {}, {} {} never less than {}\n\n", printable(arguments.trace),
             last > first ? fmt::format("memory grows by {} a {}{}", to_text(each(last - first, growth)), part,
                                        cause.empty() ? "" : ", most from " + cause)
                          : "memory does not grow, but these do",
             noun, growth.first(), to_text(first), noun, growth.parts() - 1, to_text(last));
  for (std::size_t i = 0; i < std::min(arguments.show, growth.rows.size()); ++i) {
    const GrowthRow& row = growth.rows[i];
    fmt::print("  {:>10} a {}, in {} of {}  {:<16} {}\n", to_text(each(row.bytes, growth)), part, row.grew,
               growth.times(), word(row.kind), row.cause.empty() ? "(not recorded)" : row.cause);
    if (!row.newest.valid()) continue;
    const OpId made = op_it_is_for(found.trace, row.newest);
    fmt::print("              {} {} not freed; the last: {} of {}\n", grouped(static_cast<std::int64_t>(row.kept)),
               row.kept == 1 ? "buffer is" : "buffers are", to_text(found.trace.buffer(row.newest).size),
               made.valid() ? op_and_phase(found.trace, made) : buffer_text(found.trace, row.newest));
  }
  if (growth.rows.size() > arguments.show)
    fmt::print("  {} others (--show {})\n", grouped(static_cast<std::int64_t>(growth.rows.size() - arguments.show)),
               growth.rows.size());
}

int explain_growth(const ExplainArguments& arguments, const Explanation& found) {
  const Growth growth = find_growth(found.trace);
  if (growth.parts() == 0)
    refuse(
        "--growth: {} has fewer than three {}; expected a recording of several steps, as of "
        "`record --dry --torch --iterations 4`",
        arguments.trace, found.trace.ops().empty() ? "like series of allocations" : "marked steps");
  arguments.json ? fmt::print("{}\n", json_text(growth_json(arguments, found, growth)))
                 : print_growth(arguments, found, growth);
  return 0;
}

int run_explain(const ExplainArguments& arguments) {
  if (arguments.peak && !arguments.at.empty()) refuse("--at: expected it without --peak");
  if (arguments.growth && (arguments.peak || !arguments.at.empty())) refuse("--growth: expected it without an instant");
  const TraceWithHistory loaded = load_with_history(arguments.trace);
  const Trace& trace = loaded.trace;
  naming(arguments.trace, [&] { require_one_memory(trace, "`explain` shows one"); });
  Explanation found{
      .trace = trace, .events = {trace, loaded.history ? &*loaded.history : nullptr}, .instant = {}, .remedies = {}};
  if (arguments.growth) return explain_growth(arguments, found);
  found.instant = arguments.at.empty() ? peak_instant(trace) : instant_of(trace, op_named(trace, arguments.at));
  found.remedies = remedies_for(trace, found.instant);
  arguments.json ? print_json(arguments, found) : print_text(arguments, found);
  for (const std::string& line : missing_names(trace)) say("{}: {}\n", arguments.trace, line);
  return 0;
}

const RegisterCommand kExplain{
    {.name = "explain",
     .summary =
         "what is alive at the peak or at an op: by module and kind, since when, what would lower it, and what grows",
     .seldom = {"--peak", "--depth"},
     .declare = [](const CommandLine& app) {
       const auto arguments = std::make_shared<ExplainArguments>();
       app.add_option("trace", arguments->trace, "a trace, in any form that import reads").required();
       app.add_flag("--peak", arguments->peak, "the first instant at which most bytes are alive (the default)");
       app.add_option("--at", arguments->at, "the instant at which the op of this number runs").type_name("OP");
       app.add_flag("--growth", arguments->growth, "what grows from step to step, and the lines that keep it");
       app.add_option("--depth", arguments->depth,
                      "parts of a module's path that make a row, as in 2 for blocks.0; 0: all")
           .capture_default_str();
       app.add_option("--show", arguments->show, "rows of each table").capture_default_str();
       app.add_flag("--json", arguments->json, "one JSON object with all rows");
       return std::function<int()>{[arguments] { return run_explain(*arguments); }};
     }}};

}  // namespace
}  // namespace tidepool
