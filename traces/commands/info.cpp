// tidepool info: the contents of a trace.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "traces/base/command_line.hpp"
#include "traces/base/refuse.hpp"
#include "traces/base/text.hpp"
#include "traces/import/importer.hpp"
#include "traces/job/job.hpp"
#include "traces/names.hpp"
#include "traces/program_names.hpp"
#include "traces/step/structure.hpp"
#include "traces/summary.hpp"
#include "traces/trace.hpp"

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

/// Prints the repeats of find_structure(): for people, or as one JSON object.
void show_structure(const std::string& path, const Trace& trace, bool json) {
  const auto begin = std::chrono::steady_clock::now();
  const Structure structure = find_structure(trace);
  const Nanos wall{std::chrono::nanoseconds{std::chrono::steady_clock::now() - begin}.count()};
  json ? print_json(path, trace, structure, wall) : print_text(trace, structure);
  say("{} in {}\n", counted(number_of_ops(trace), "op"), to_text(wall));
}

struct InfoArguments {
  std::string input, format = "auto";
  std::size_t largest = 0;
  bool structure = false, json = false;
};

using Json = nlohmann::ordered_json;

std::string meta(const Trace& trace, const std::string& key) {
  const auto found = trace.data().meta.find(key);
  return found == trace.data().meta.end() ? "" : found->second;
}

/// The buffers with most bytes, at most `most`; of equal ones, the first in the trace.
std::vector<BufferId> largest_buffers(const Trace& trace, std::size_t most) {
  std::vector<BufferId> all;
  for (std::size_t i = 0; i < trace.buffers().size(); ++i) all.emplace_back(i);
  std::stable_sort(all.begin(), all.end(),
                   [&](BufferId a, BufferId b) { return trace.buffer(a).size > trace.buffer(b).size; });
  all.resize(std::min(most, all.size()));
  return all;
}

Json largest_json(const Trace& trace, std::size_t most) {
  Json rows = Json::array();
  const std::vector<OpId> is_for = ops_they_are_for(trace);
  for (const BufferId id : largest_buffers(trace, most))
    rows.push_back({{"buffer", id.value()},
                    {"bytes", trace.buffer(id).size.count()},
                    {"kind", word(trace.buffer(id).kind)},
                    {"name", program_name(trace, id, is_for[id.index()])}});
  return rows;
}

void print_largest(const Trace& trace, std::size_t most) {
  if (most > 0) fmt::print("largest buffers\n");
  const std::vector<OpId> is_for = ops_they_are_for(trace);
  for (const BufferId id : largest_buffers(trace, most))
    fmt::print("  {:>10}  {:<16}{}\n", to_text(trace.buffer(id).size), word(trace.buffer(id).kind),
               buffer_text(trace, id, is_for[id.index()]));
}

Json to_json(const Trace& trace) {
  const Summary sum = summarize(trace);
  const Losses& lost = trace.data().losses;
  Json evidence = Json::object(), kinds = Json::object();
  for (std::size_t i = 0; i < sum.evidence.size(); ++i) evidence[std::string{words<Evidence>()[i]}] = sum.evidence[i];
  for (std::size_t i = 0; i < sum.bytes_of_kind.size(); ++i)
    kinds[std::string{words<BufferKind>()[i]}] = sum.bytes_of_kind[i].count();
  return {{"buffers", sum.buffers},
          {"versions", sum.versions},
          {"views", sum.views},
          {"ops", sum.ops},
          {"kernels", sum.kernels},
          {"copies", sum.copies},
          {"random_ops", sum.random_ops},
          {"uses", sum.uses},
          {"steps", sum.steps},
          {"iterations", sum.iterations},
          {"ideal_peak_bytes", sum.ideal_peak.count()},
          {"kind_bytes", kinds},
          {"duration_ns", sum.duration.count()},
          {"recorded_span_ns", sum.span.count()},
          {"host_ns", issue_time(trace).count() * static_cast<std::int64_t>(sum.ops)},
          {"streams", sum.streams},
          {"devices", sum.devices},
          {"evidence", evidence},
          {"losses",
           {{"dropped_records", lost.dropped_records},
            {"unmatched_frees", lost.unmatched_frees},
            {"unknown_pointers", lost.unknown_pointers},
            {"clock_residual_ns", lost.clock_residual_ns}}},
          {"source", meta(trace, "source")},
          {"trace_hash", trace.hash()},
          {"meta", trace.data().meta}};
}

void print_table(const Trace& trace) {
  const Summary sum = summarize(trace);
  const auto row = [](const char* name, const auto& value) { fmt::print("{:<13} {}\n", name, value); };
  row("trace", trace.hash());
  for (const auto& [key, value] : trace.data().meta) row(printable(key).c_str(), printable(value));
  row("buffers", sum.buffers);
  for (std::size_t i = 0; i < sum.bytes_of_kind.size(); ++i)
    if (sum.bytes_of_kind[i] != Bytes{})
      fmt::print("  {:<16} {}\n", words<BufferKind>()[i], to_text(sum.bytes_of_kind[i]));
  row("versions", fmt::format("{}, {} of them views", sum.versions, sum.views));
  row("ops", fmt::format("{}: {} kernels, {} copies; {} draw random numbers", sum.ops, sum.kernels, sum.copies,
                         sum.random_ops));
  row("uses", sum.uses);
  for (std::size_t i = 0; i < sum.evidence.size(); ++i)
    if (sum.evidence[i] != 0) fmt::print("  {:<16} {}\n", words<Evidence>()[i], sum.evidence[i]);
  row("iterations", sum.iterations);
  row("streams", sum.streams);
  row("devices", sum.devices);
  row("ideal peak", fmt::format("{} ({} bytes)", to_text(sum.ideal_peak), sum.ideal_peak.count()));
  if (!error_of_times(trace).empty()) {
    row("duration", fmt::format("{} of ops; a host issues them in about {}", to_text(sum.duration),
                                to_text(issue_time(trace) * static_cast<std::int64_t>(sum.ops))));
    return;
  }
  const std::string span =
      sum.span > sum.duration ? fmt::format(" of ops; recorded within {}", to_text(sum.span)) : std::string{};
  row("duration", to_text(sum.duration) + span);
}

Json job_to_json(const LoadedJob& loaded) {
  Json ranks = Json::array(), groups = Json::array(), collectives = Json::array();
  for (std::size_t rank = 0; rank < loaded.traces.size(); ++rank)
    ranks.push_back({{"trace", loaded.job.ranks[rank].trace},
                     {"start_ns", loaded.job.ranks[rank].start.count()},
                     {"info", to_json(loaded.traces[rank])}});
  for (const JobGroup& group : loaded.job.groups) groups.push_back({{"name", group.name}, {"ranks", group.ranks}});
  for (const JobCollective& collective : loaded.job.collectives) {
    collectives.push_back({{"name", collective.name},
                           {"group", loaded.job.groups[collective.group].name},
                           {"cost_ns", collective.cost.count()}});
    if (collective.input) collectives.back()["input_bytes"] = collective.input->count();
  }
  return {{"ranks", ranks},
          {"groups", groups},
          {"collectives", collectives},
          {"clock_residual_ns", loaded.job.clock_residual.count()}};
}

void print_job_table(const LoadedJob& loaded) {
  fmt::print("{:>5}  {:<16} {:>6} {:>7} {:>10} {:>10} {:>10}\n", "rank", "trace", "ops", "buffers", "peak", "starts",
             "duration");
  for (std::size_t rank = 0; rank < loaded.traces.size(); ++rank) {
    const Summary sum = summarize(loaded.traces[rank]);
    fmt::print("{:>5}  {:<16} {:>6} {:>7} {:>10} {:>10} {:>10}\n", rank, loaded.traces[rank].hash(), sum.ops,
               sum.buffers, to_text(sum.ideal_peak), to_text(loaded.job.ranks[rank].start), to_text(sum.duration));
  }
  fmt::print("\n{:>10}  {:<16} {:<10} {:>10} {:>10}\n", "collective", "", "group", "input", "cost");
  for (std::size_t i = 0; i < loaded.job.collectives.size(); ++i) {
    const JobCollective& each = loaded.job.collectives[i];
    fmt::print("{:>10}  {:<16} {:<10} {:>10} {:>10}\n", i, each.name, loaded.job.groups[each.group].name,
               each.input ? to_text(*each.input) : "-", to_text(each.cost));
  }
  fmt::print("\nrecorded ends of one collective differ by up to {}\n", to_text(loaded.job.clock_residual));
}

int inform_of_job(const InfoArguments& arguments) {
  const LoadedJob loaded = load_job(arguments.input);
  if (arguments.json)
    fmt::print("{}\n", json_text(job_to_json(loaded)));
  else
    print_job_table(loaded);
  for (std::size_t rank = 0; rank < loaded.traces.size(); ++rank)
    for (const std::string& line : warnings(loaded.traces[rank])) say("{}: rank {}: {}\n", arguments.input, rank, line);
  return 0;
}

int inform(const InfoArguments& arguments) {
  if (arguments.format == "auto" && is_job_file(arguments.input)) {
    if (arguments.largest > 0 || arguments.structure)
      refuse("--{}: {} is a job; expected the trace of one of its ranks", arguments.structure ? "structure" : "largest",
             arguments.input);
    return inform_of_job(arguments);
  }
  const auto start = std::chrono::steady_clock::now();
  const Trace trace = load_trace(arguments.input, arguments.format);
  const Nanos took{std::chrono::nanoseconds{std::chrono::steady_clock::now() - start}.count()};
  if (arguments.structure) {
    show_structure(arguments.input, trace, arguments.json);
    return 0;
  }
  if (arguments.json) {
    Json object = to_json(trace);
    if (arguments.largest > 0) object["largest"] = largest_json(trace, arguments.largest);
    fmt::print("{}\n", json_text(object));
  } else {
    print_table(trace);
    print_largest(trace, arguments.largest);
  }
  const std::size_t records = summarize(trace).records();
  say("{} records in {}, {:.1f} M/s\n", records, to_text(took),
      static_cast<double>(records) * 1e3 / static_cast<double>(std::max<std::int64_t>(took.count(), 1)));
  for (const std::string& line : warnings(trace)) say("{}: {}\n", arguments.input, line);
  return 0;
}

const RegisterCommand kInfo{
    {.name = "info",
     .summary = "the contents of a trace: buffers, ops, peak, evidence, losses",
     .seldom = {"--format"},
     .declare = [](const CommandLine& app) {
       const auto arguments = std::make_shared<InfoArguments>();
       app.add_option("trace", arguments->input, "RUN.tide, a job file, or anything that import reads").required();
       app.add_option("--format", arguments->format, "as for import").capture_default_str();
       app.add_option("--largest", arguments->largest, "also the N largest buffers, as the program names them")
           .type_name("N");
       app.add_flag("--structure", arguments->structure,
                    "the repeated parts of the step instead: micro-batches, layers, blocks");
       app.add_flag("--json", arguments->json, "one JSON object");
       return [arguments] { return inform(*arguments); };
     }}};

}  // namespace

}  // namespace tidepool
