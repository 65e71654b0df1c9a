// tidepool audit: comparison of an allocator's model with a log from a device, and of the memory model of a paper with
// the schedules published for it.
#include "simulator/studies/audit/audit.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>

#include "simulator/engine/pools/caching_pool.hpp"
#include "simulator/registry.hpp"
#include "traces/base/command_line.hpp"
#include "traces/base/error.hpp"
#include "traces/base/text.hpp"
#include "traces/import/importer.hpp"

namespace tidepool {
namespace {

struct AuditArguments {
  std::string path, pool, segments;
  bool json = false;
};

/// A snapshot is a pickle, which begins with the byte 0x80. Any other log is read as a trace with addresses.
bool is_snapshot(const Input& input) { return input.bytes().starts_with('\x80'); }

AuditReport audit_log(const AuditArguments& arguments, const Input& input, const Options& options) {
  std::vector<LoggedSegment> segments;
  if (!arguments.segments.empty())
    segments = parse_segments(arguments.segments, read_input(arguments.segments).bytes());
  const Trace trace = load_trace(input);
  try {
    return audit_cnmem(trace, options.bytes("init"), segments);
  } catch (const InputError& error) {
    throw error.at(arguments.path);
  }
}

AuditReport audit(const AuditArguments& arguments, const Input& input) {
  const Spec spec{arguments.pool.empty() ? is_snapshot(input) ? "pytorch" : "cnmem" : arguments.pool};
  const PoolInfo& pool = find_pool(spec.name);
  const Options options{pool.name, pool.options, spec.options};
  if (pool.name == "cnmem") {
    if (is_snapshot(input))
      throw InputError{"--pool: a PyTorch snapshot was not recorded under cnmem; expected pytorch"};
    return audit_log(arguments, input, options);
  }
  if (!pool.name.starts_with("pytorch"))
    throw InputError{fmt::format("--pool: '{}' has no logs from devices; expected pytorch or cnmem", pool.name)};
  if (!is_snapshot(input))
    throw InputError{
        fmt::format("{}: no pickled PyTorch snapshot; expected one for --pool {}", arguments.path, pool.name)};
  if (!arguments.segments.empty())
    throw InputError{"--segments: a PyTorch snapshot has its own; expected --pool cnmem"};
  try {
    const TorchSnapshot snapshot = parse_torch_snapshot(input.bytes());
    const bool given = !spec.options.empty();
    return audit_snapshot(snapshot, given ? caching_config(pool.name, options, pool.name == "pytorch-expandable")
                                          : recorded_config(snapshot.settings));
  } catch (const InputError& error) {
    throw error.at(input.path());
  }
}

nlohmann::ordered_json to_json(const DeviceAudit& audit) {
  nlohmann::ordered_json object{{"allocations", audit.allocations},
                                {"matched", audit.matched},
                                {"first_mismatch", nullptr},
                                {"segment_allocations", audit.segment_allocations},
                                {"segment_matched", audit.segment_matched},
                                {"inferred_segments", audit.inferred_segments},
                                {"segment_releases", audit.segment_releases},
                                {"releases_matched", audit.releases_matched},
                                {"out_of_memory", audit.out_of_memory},
                                {"out_of_memory_matched", audit.out_of_memory_matched},
                                {"start_state", audit.start_state}};
  if (audit.first_mismatch) object["first_mismatch"] = *audit.first_mismatch;
  return object;
}

/// A message if nothing was compared on any device, or if another allocator wrote the log; else "".
std::string verdict(const AuditArguments& arguments, const DeviceAudit& total) {
  if (total.compared() == 0) return fmt::format("{}: nothing was compared: no event has an address", arguments.path);
  // Two allocators agree on the first block, and by chance on a few others: fewer than 1 in kFew.
  constexpr std::int64_t kFew = 100;
  if (total.first_mismatch && total.matched * kFew < total.allocations)
    return fmt::format("{}: {} of {} addresses match: it was recorded under another allocator, such as cudaMalloc",
                       arguments.path, total.matched, total.allocations);
  return "";
}

nlohmann::ordered_json to_json(const ReplayedSchedule& schedule) {
  nlohmann::ordered_json object{{"budget", schedule.budget},
                                {"capacity_bytes", schedule.capacity.count()},
                                {"stored_cost_ns", schedule.stored_cost.count()},
                                {"stored_peak_bytes", schedule.stored_peak.count()},
                                {"matches", schedule.matches()}};
  if (!schedule.refused.empty()) {
    object["refused"] = schedule.refused;
  } else {
    object["cost_ns"] = schedule.cost.count();
    object["peak_bytes"] = schedule.peak.count();
  }
  return object;
}

/// Audits the published schedules of a graph. @return  the exit code
int run_schedules(const AuditArguments& arguments, const RecomputeGraph& graph) {
  if (!arguments.pool.empty() || !arguments.segments.empty())
    throw InputError{
        fmt::format("{}: is a graph with schedules, not an allocator's log; expected neither --pool nor "
                    "--segments",
                    arguments.path)};
  const std::vector<ReplayedSchedule> schedules = audit_schedules(graph);
  const auto matched =
      std::count_if(schedules.begin(), schedules.end(), [](const ReplayedSchedule& each) { return each.matches(); });
  const int code = !schedules.empty() && matched == std::ssize(schedules) ? 0 : 1;
  if (schedules.empty()) say("tidepool: {}: nothing was compared: no schedule is stored\n", arguments.path);
  if (arguments.json) {
    nlohmann::ordered_json object{
        {"format", to_text(graph.form)}, {"schedules", schedules.size()}, {"matched", matched}};
    object["budgets"] = nlohmann::ordered_json::array();
    for (const ReplayedSchedule& each : schedules) object["budgets"].push_back(to_json(each));
    fmt::print("{}\n", json_text(object));
    return code;
  }
  if (schedules.empty()) return code;
  fmt::print("{:>8}  {:>16}  {:>16}  {:>14}  {:>14}\n", "budget", "stored cost", "replayed", "stored peak", "replayed");
  for (const ReplayedSchedule& each : schedules) {
    if (!each.refused.empty()) {
      fmt::print("{:>8}  {}\n", each.budget, each.refused);
      continue;
    }
    fmt::print("{:>8}  {:>13} ns  {:>13} ns  {:>12} B  {:>12} B{}\n", each.budget, each.stored_cost.count(),
               each.cost.count(), each.stored_peak.count(), each.peak.count(), each.matches() ? "" : "  differs");
  }
  fmt::print("{} of {} schedules match in cost and peak\n", matched, schedules.size());
  return code;
}

int run_audit(const AuditArguments& arguments) {
  const Input input = read_input(arguments.path);
  if (const std::optional<GraphForm> form = recompute_graph_form(input.bytes().substr(0, kSniffBytes)))
    return run_schedules(arguments, parse_recompute_graph(input, *form));
  const AuditReport report = audit(arguments, input);
  const std::string said = verdict(arguments, report.total());
  if (!said.empty()) say("tidepool: {}\n", said);
  const int code = report.exact() && report.total().compared() > 0 ? 0 : 1;
  if (arguments.json) {
    nlohmann::ordered_json object = to_json(report.total());
    object["devices"] = nlohmann::ordered_json::array();
    for (const DeviceAudit& device : report.devices) {
      nlohmann::ordered_json entry{{"device", device.device}};
      entry.update(to_json(device));
      if (device.peaks) {
        entry["peak_allocated_bytes"] = device.peaks->allocated.count();
        entry["peak_reserved_bytes"] = device.peaks->reserved.count();
      }
      entry["ambiguous_blocks"] = nlohmann::ordered_json::array();
      for (const AmbiguousBlock& block : device.ambiguous)
        entry["ambiguous_blocks"].push_back({{"address", fmt::format("{:#x}", block.address)},
                                             {"size_bytes", block.size.count()},
                                             {"most_slack_bytes", block.most_slack.count()}});
      object["devices"].push_back(std::move(entry));
    }
    fmt::print("{}\n", json_text(object));
    return code;
  }
  if (report.devices.empty()) return code;
  fmt::print("{:>6}  {:>17}  {:>17}  {:>17}  {:>9}  {}\n", "device", "addresses", "segments, pages", "given back",
             "refused", "start state");
  for (const DeviceAudit& device : report.devices)
    fmt::print("{:>6}  {:>8}/{:<8}  {:>8}/{:<8}  {:>8}/{:<8}  {:>4}/{:<4}  {}\n", device.device, device.matched,
               device.allocations, device.segment_matched, device.segment_allocations, device.releases_matched,
               device.segment_releases, device.out_of_memory_matched, device.out_of_memory, device.start_state);
  if (const std::int64_t inferred = report.total().inferred_segments; inferred > 0)
    fmt::print("{} segments are not logged: each is assumed to begin where its first block begins\n", inferred);
  for (const DeviceAudit& device : report.devices)
    if (device.peaks)
      fmt::print("device {}: at most {} allocated, {} reserved\n", device.device, to_text(device.peaks->allocated),
                 to_text(device.peaks->reserved));
  for (const DeviceAudit& device : report.devices)
    if (device.first_mismatch) fmt::print("device {}: {}\n", device.device, *device.first_mismatch);
  return code;
}

const RegisterCommand kAudit{
    {.name = "audit",
     .summary =
         "replay an allocator's log and compare every recorded address, or replay published schedules and compare cost "
         "and peak",
     .declare = [](const CommandLine& app) {
       auto arguments = std::make_shared<AuditArguments>();
       app.add_option(
              "log", arguments->path,
              "a PyTorch memory snapshot, a malloc/free log with addresses, or a graph with published schedules")
           .required();
       app.add_option("--pool", arguments->pool,
                      "pytorch or cnmem, with options if they differ from what the log says or from the defaults");
       app.add_option("--segments", arguments->segments,
                      "a file with the address and the MiB of each segment that the device handed out to cnmem");
       app.add_flag("--json", arguments->json, "one JSON object");
       return [arguments] { return run_audit(*arguments); };
     }}};

}  // namespace
}  // namespace tidepool
