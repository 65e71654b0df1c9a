// The JSON of AMD's rocprofv3 (rocprofiler-sdk): rocprofv3 --kernel-trace --memory-copy-trace --memory-allocation-trace
// --output-format json. Kernels and copies are ops, allocations of GPU agents are buffers. A file does not say which
// buffers a kernel uses: the ops have no uses.
#include <fmt/format.h>
#include <simdjson.h>

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "traces/base/lines.hpp"
#include "traces/base/refuse.hpp"
#include "traces/base/total.hpp"
#include "traces/import/gpu_timeline.hpp"
#include "traces/import/importer.hpp"
#include "traces/import/readers.hpp"
#include "traces/op_names.hpp"

namespace tidepool {
namespace {

using simdjson::dom::array;
using simdjson::dom::element;
using simdjson::dom::object;

constexpr char kTool[] = "rocprofiler-sdk-tool";
constexpr std::uint64_t kGpuAgent = 2;  // rocprofiler_agent_type_t

class RocprofilerReader {
 public:
  explicit RocprofilerReader(const Input& input) {
    const std::string_view text = input.bytes();
    object file;
    array tools;
    if (parser_.parse(reinterpret_cast<const std::uint8_t*>(text.data()), text.size()).get(file) != simdjson::SUCCESS ||
        file[kTool].get(tools) != simdjson::SUCCESS)
      refuse("no JSON with a list \"{}\"; expected what rocprofv3 --output-format json writes", kTool);
    timeline_.what = "file";
    for (const element tool : tools) {
      read_agents(tool);
      read_names(tool);
      read_records(tool);
    }
  }

  Trace run(std::optional<std::size_t> device) const {
    TraceBuilder builder = build_trace(timeline_, device);
    builder.meta()["source"] = "rocprofiler";
    builder.meta()["time"] = "measured";
    if (products_.size() == 1) builder.meta()["device"] = *products_.begin();
    if (!has_memory_)
      builder.meta()["lacks"] = "allocations: this is a timeline only; record them with --memory-allocation-trace";
    return builder.finish();
  }

 private:
  using Found = simdjson::simdjson_result<element>;

  static std::optional<std::uint64_t> number(const Found& value) {
    std::uint64_t found = 0;
    return value.get(found) == simdjson::SUCCESS ? std::optional{found} : std::nullopt;
  }
  static std::string_view text(const Found& value) {
    std::string_view found;
    return value.get(found) == simdjson::SUCCESS ? found : std::string_view{};
  }
  static std::int64_t time(const element& record, const char* key) {
    const auto found = number(record[key]);
    if (!found || *found > static_cast<std::uint64_t>(Total::kMost))
      refuse("a record has no \"{}\"; expected a time in ns", key);
    return static_cast<std::int64_t>(*found);
  }

  void read_agents(const element& tool) {
    array agents;
    if (tool["agents"].get(agents) != simdjson::SUCCESS) return;
    for (const element agent : agents) {
      const auto handle = number(agent["id"]["handle"]);
      if (!handle || number(agent["type"]) != kGpuAgent) continue;
      if (devices_.size() == kMostDevices) refuse("has more than {} GPUs", kMostDevices);
      devices_.try_emplace(*handle, static_cast<std::uint16_t>(devices_.size()));
      if (const std::string_view product = text(agent["product_name"]); !product.empty()) products_.emplace(product);
    }
  }

  void read_names(const element& tool) {
    array symbols;
    kernels_.clear();
    if (tool["kernel_symbols"].get(symbols) == simdjson::SUCCESS)
      for (const element symbol : symbols) {
        std::string_view name = text(symbol["formatted_kernel_name"]);
        if (name.empty()) name = text(symbol["kernel_name"]);
        if (const auto id = number(symbol["kernel_id"])) kernels_[*id] = name;
      }
    array kinds;
    operations_.reset();
    if (tool["strings"]["buffer_records"].get(kinds) == simdjson::SUCCESS) operations_ = kinds;
  }

  /// The name of what a record did, as in MEMORY_ALLOCATION_FREE.
  std::string_view operation(const element& record) const {
    const auto kind = number(record["kind"]), index = number(record["operation"]);
    if (!kind || !index || !operations_) return {};
    return text(operations_->at(*kind)["operations"].at(*index));
  }

  std::optional<std::uint16_t> device(const Found& agent) const {
    const auto handle = number(agent["handle"]);
    const auto found = handle ? devices_.find(*handle) : devices_.end();
    return found == devices_.end() ? std::nullopt : std::optional{found->second};
  }

  /// The stream that a record names, or else its queue.
  GpuStream stream(const element& record, const Found& queue) {
    std::uint64_t handle = number(record["stream_id"]["handle"]).value_or(0);
    if (handle == 0) handle = number(queue).value_or(0);
    const auto found = streams_.try_emplace(handle, static_cast<std::int64_t>(streams_.size())).first;
    return {.stream = found->second};
  }

  template <class Read>
  void each(const element& tool, const char* kind, const Read& read) {
    array records;
    if (tool["buffer_records"][kind].get(records) != simdjson::SUCCESS) return;
    for (const element record : records) read(record);
  }

  GpuOp op_of(const element& record, std::uint16_t device, GpuStream on) const {
    GpuOp op;
    op.device = device;
    op.stream = on;
    op.start = time(record, "start_timestamp");
    op.duration = time(record, "end_timestamp") - *op.start;
    if (op.duration < 0) refuse("a record ends before it starts");
    return op;
  }

  void read_records(const element& tool) {
    each(tool, "kernel_dispatch", [&](const element& record) {
      const Found info = record["dispatch_info"];
      const std::optional<std::uint16_t> on = device(info["agent_id"]);
      if (!on) refuse("a kernel of an agent that is no GPU in \"agents\"; expected one of these");
      GpuOp op = op_of(record, *on, stream(record, info["queue_id"]["handle"]));
      const auto symbol = kernels_.find(number(info["kernel_id"]).value_or(0));
      op.name = symbol == kernels_.end() ? "kernel" : symbol->second;
      op.kind = names_collective(op.name) ? OpKind::kCollective : OpKind::kKernel;
      timeline_.ops.push_back(op);
    });
    each(tool, "memory_copy", [&](const element& record) {
      std::optional<std::uint16_t> on = device(record["dst_agent_id"]);
      if (!on) on = device(record["src_agent_id"]);
      if (!on) return;
      GpuOp op = op_of(record, *on, stream(record, {}));
      op.name = operation(record);
      if (op.name.empty()) op.name = "copy";
      op.kind = OpKind::kCopy;
      timeline_.ops.push_back(op);
    });
    each(tool, "memory_allocation", [&](const element& record) { read_memory(record); });
  }

  void read_memory(const element& record) {
    const std::string_view what = operation(record);
    const std::optional<std::int64_t> address = parse_whole(text(record["address"]));
    if (what.empty() || !address) refuse("an allocation has no operation or no address; expected both");
    GpuMemory memory;
    memory.address = *address;
    if (what.ends_with("FREE")) {
      const auto held = held_.find(*address);
      if (held == held_.end()) return;  // of the host, whose frees look alike
      memory.event = BlockEvent::kFree;
      memory.device = held->second.first;
      memory.size = held->second.second;
      held_.erase(held);
    } else {
      const std::optional<std::uint16_t> on = device(record["agent_id"]);
      if (!on) return;
      memory.device = *on;
      memory.size = time(record, "allocation_size");
      held_[*address] = {*on, memory.size};
    }
    memory.time = time(record, "end_timestamp");
    memory.stream.stream = -1;
    has_memory_ = true;
    timeline_.memory.push_back(memory);
  }

  static constexpr std::size_t kMostDevices = 1024;

  simdjson::dom::parser parser_;                    // names point into it
  std::map<std::uint64_t, std::uint16_t> devices_;  // by agent
  std::set<std::string> products_;
  std::unordered_map<std::uint64_t, std::string_view> kernels_;
  std::optional<array> operations_;  // by kind of record
  std::map<std::uint64_t, std::int64_t> streams_;
  std::map<std::int64_t, std::pair<std::uint16_t, std::int64_t>> held_;  // by address: device and size
  GpuTimeline timeline_;
  bool has_memory_ = false;
};

Trace read_profile(const Input& input, std::optional<std::size_t> device) {
  return naming(input.path(), [&] { return RocprofilerReader{input}.run(device); });
}

int sniff_rocprofiler(std::string_view head) {
  return head.starts_with('{') && head.find(kTool) != std::string_view::npos ? 95 : 0;
}

const RegisterImporter kRocprofiler{{"rocprofiler",
                                     "profiles of AMD GPUs by rocprofv3 (rocprofiler-sdk, --output-format json)",
                                     {".json"},
                                     sniff_rocprofiler,
                                     read_rocprofiler,
                                     read_rocprofiler_device}};

}  // namespace

Trace read_rocprofiler(const Input& input) { return read_profile(input, std::nullopt); }

Trace read_rocprofiler_device(const Input& input, std::size_t device) { return read_profile(input, device); }

}  // namespace tidepool
