// tidepool audit: is the model of an allocator right about a log that was recorded on a device?
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "simulator/audit/cnmem_audit.hpp"
#include "simulator/audit/snapshot_audit.hpp"
#include "simulator/pools/caching_pool.hpp"
#include "simulator/registry.hpp"
#include "traces/command.hpp"
#include "traces/error.hpp"
#include "traces/import/importer.hpp"
#include "traces/json_text.hpp"

namespace tidepool {
namespace {

struct Arguments {
  std::string path, pool, segments;
  bool json = false;
};

/// A pickle begins with its protocol; every other form is read as a trace with addresses.
bool is_snapshot(const Input& input) { return input.bytes().starts_with('\x80'); }

AuditReport audit_log(const Arguments& arguments, const Options& options) {
  std::vector<LoggedSegment> segments;
  if (!arguments.segments.empty())
    segments = parse_segments(arguments.segments, read_input(arguments.segments).bytes());
  const Trace trace = load_trace(arguments.path);
  try {
    return audit_cnmem(trace, options.bytes("init"), segments);
  } catch (const InputError& error) {
    throw error.at(arguments.path);
  }
}

AuditReport audit(const Arguments& arguments) {
  const Input input = read_input(arguments.path);
  const Spec spec = parse_spec(arguments.pool.empty() ? is_snapshot(input) ? "pytorch" : "cnmem" : arguments.pool);
  const PoolInfo& pool = find_pool(spec.name);
  const Options options{pool.name, pool.options, spec.options};
  if (pool.name == "cnmem") {
    if (is_snapshot(input))
      throw InputError{"--pool: a PyTorch snapshot was not recorded under cnmem; expected pytorch"};
    return audit_log(arguments, options);
  }
  if (!pool.name.starts_with("pytorch"))
    throw InputError{fmt::format("--pool: no device records what '{}' does; expected pytorch or cnmem", pool.name)};
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

/// What to say of all devices together: that nothing was compared, or that this is no log of the allocator; else "".
std::string verdict(const Arguments& arguments, const DeviceAudit& total) {
  if (total.compared() == 0) return fmt::format("{}: nothing was compared: no event has an address", arguments.path);
  constexpr std::int64_t kFew = 100;  // two allocators agree on a first block, and by chance on few others
  if (total.first_mismatch && total.matched * kFew < total.allocations)
    return fmt::format("{}: {} of {} addresses match: it was recorded under another allocator, as cudaMalloc",
                       arguments.path, total.matched, total.allocations);
  return "";
}

int run(const Arguments& arguments) {
  const AuditReport report = audit(arguments);
  const std::string said = verdict(arguments, report.total());
  if (!said.empty()) fmt::print(stderr, "tidepool: {}\n", said);
  const int code = report.exact() && report.total().compared() > 0 ? 0 : 1;
  if (arguments.json) {
    nlohmann::ordered_json object = to_json(report.total());
    object["devices"] = nlohmann::ordered_json::array();
    for (const DeviceAudit& device : report.devices) {
      nlohmann::ordered_json entry{{"device", device.device}};
      entry.update(to_json(device));
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
    fmt::print("{} segments are not logged: each was taken to begin where its first block does\n", inferred);
  for (const DeviceAudit& device : report.devices)
    if (device.first_mismatch) fmt::print("device {}: {}\n", device.device, *device.first_mismatch);
  return code;
}

const RegisterCommand kRegister{
    {"audit", "replay an allocator's log and compare every recorded address", [](const CommandLine& app) {
       auto arguments = std::make_shared<Arguments>();
       app.add_option("log", arguments->path, "a PyTorch memory snapshot, or a malloc/free log with addresses")
           .required();
       app.add_option("--pool", arguments->pool,
                      "pytorch or cnmem, with options if they differ from what the log says or from the defaults");
       app.add_option("--segments", arguments->segments, "addresses and MiB that the device handed out to cnmem");
       app.add_flag("--json", arguments->json, "one JSON object");
       return [arguments] { return run(*arguments); };
     }}};

}  // namespace
}  // namespace tidepool
