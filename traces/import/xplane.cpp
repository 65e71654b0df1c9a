// Profiles of XLA and TensorFlow (*.xplane.pb): the planes of devices with their streams, and the events of allocators
// on the host (MemoryAllocation, MemoryDeallocation, by BFC allocators). Of a GPU, the lines "Stream ..." are ops; of a
// TPU, the line "XLA Ops". A file does not say which buffers an op uses: the ops have no uses.
#include <fmt/format.h>
#include <schemas/xplane.pb.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "traces/base/lines.hpp"
#include "traces/base/refuse.hpp"
#include "traces/base/total.hpp"
#include "traces/import/gpu_timeline.hpp"
#include "traces/import/importer.hpp"
#include "traces/import/message.hpp"
#include "traces/import/readers.hpp"
#include "traces/op_names.hpp"

namespace tidepool {
namespace {

constexpr std::string_view kDevice = "/device:";
constexpr std::int64_t kPicosecondsPerNano = 1000;

/// The number behind the last `mark` of a name, as in /device:GPU:1 or GPU_1_bfc; none if there is no such number.
std::optional<std::uint16_t> number_behind(std::string_view name, std::string_view mark) {
  const std::size_t at = name.find(mark);
  if (at == std::string_view::npos) return {};
  name.remove_prefix(at + mark.size());
  constexpr std::int64_t kMostDevices = 1024;
  const std::optional<std::int64_t> number = parse_whole(name.substr(0, name.find_first_not_of("0123456789")));
  return number && *number < kMostDevices ? std::optional{static_cast<std::uint16_t>(*number)} : std::nullopt;
}

class PlaneReader {
 public:
  explicit PlaneReader(const Input& input)
      : space_{parse_message<xplane::Space>(input, "a profile of XLA or TensorFlow (*.xplane.pb)")} {
    timeline_.what = "profile";
    for (const xplane::Plane& plane : space_.planes()) {
      if (plane.name().starts_with(kDevice) && plane.name().find("CUSTOM") == std::string::npos) read_device(plane);
      if (plane.name() == "/host:CPU") read_host(plane);
    }
    if (std::ranges::any_of(host_memory_, [](const auto& each) { return each.first.starts_with("GPU_"); }))
      std::erase_if(host_memory_, [](const auto& each) { return !each.first.starts_with("GPU_"); });
    for (const auto& [allocator, events] : host_memory_)
      timeline_.memory.insert(timeline_.memory.end(), events.begin(), events.end());
    if (timeline_.ops.empty() && timeline_.memory.empty())
      refuse("no op of a device and no event of an allocator; expected a profile of a GPU or a TPU");
  }

  Trace run(std::optional<std::size_t> device) const {
    TraceBuilder builder = build_trace(timeline_, device);
    builder.meta()["source"] = "xplane";
    builder.meta()["time"] = "measured";
    if (timeline_.memory.empty())
      builder.meta()["lacks"] =
          "allocations: this is a timeline only; only allocators of the kind BFC write events, and JAX's have none if "
          "XLA_PYTHON_CLIENT_ALLOCATOR=platform";
    return builder.finish();
  }

 private:
  static std::int64_t time_of(const xplane::Line& line, const xplane::Event& event) {
    const std::int64_t offset = event.offset_ps() / kPicosecondsPerNano;
    if (line.timestamp_ns() < 0 || line.timestamp_ns() > Total::kMost || offset < 0 || event.duration_ps() < 0)
      refuse("line '{}' has an event at {} ns + {} ps; expected times of at least 0", excerpt(line.name()),
             line.timestamp_ns(), event.offset_ps());
    return line.timestamp_ns() + offset;
  }

  static std::string_view name_of(const xplane::Plane& plane, const xplane::Event& event) {
    const auto found = plane.event_metadata().find(event.metadata_id());
    return found == plane.event_metadata().end() ? std::string_view{} : found->second.name();
  }

  void read_device(const xplane::Plane& plane) {
    const std::size_t colon = plane.name().find(':', kDevice.size());
    const std::uint16_t device =
        number_behind(std::string_view{plane.name()}.substr(std::min(colon, plane.name().size())), ":").value_or(0);
    const bool streams = std::ranges::any_of(plane.lines(), is_stream);
    for (const xplane::Line& line : plane.lines()) {
      if (streams ? !is_stream(line) : line.name() != "XLA Ops") continue;
      for (const xplane::Event& event : line.events()) {
        GpuOp op;
        op.name = name_of(plane, event);
        op.device = device;
        op.stream.stream = line.id();
        op.start = time_of(line, event);
        op.duration = event.duration_ps() / kPicosecondsPerNano;
        op.kind = kind_of(op.name);
        timeline_.ops.push_back(op);
      }
    }
  }

  static bool is_stream(const xplane::Line& line) { return line.name().starts_with("Stream"); }

  static OpKind kind_of(std::string_view name) {
    if (name.starts_with("Memcpy")) return OpKind::kCopy;
    if (name.starts_with("Memset")) return OpKind::kMemset;
    return names_collective(name) ? OpKind::kCollective : OpKind::kKernel;
  }

  /// The texts and numbers of an event by their names.
  struct Stats {
    std::map<std::string_view, std::string_view> texts;
    std::map<std::string_view, std::int64_t> numbers;

    std::int64_t number(std::string_view name) const {
      const auto found = numbers.find(name);
      return found == numbers.end() ? 0 : found->second;
    }
    std::string_view text(std::string_view name) const {
      const auto found = texts.find(name);
      return found == texts.end() ? std::string_view{} : found->second;
    }
  };

  static Stats stats_of(const xplane::Plane& plane, const xplane::Event& event) {
    Stats stats;
    const auto name = [&](std::int64_t id) {
      const auto found = plane.stat_metadata().find(id);
      return found == plane.stat_metadata().end() ? std::string_view{} : std::string_view{found->second.name()};
    };
    for (const xplane::Stat& stat : event.stats()) {
      const std::string_view key = name(stat.metadata_id());
      if (stat.value_case() == xplane::Stat::kStrValue) stats.texts[key] = stat.str_value();
      if (stat.value_case() == xplane::Stat::kRefValue)
        stats.texts[key] = name(static_cast<std::int64_t>(stat.ref_value()));
      if (stat.value_case() == xplane::Stat::kInt64Value) stats.numbers[key] = stat.int64_value();
      if (stat.value_case() == xplane::Stat::kUint64Value)
        stats.numbers[key] = static_cast<std::int64_t>(stat.uint64_value());
    }
    return stats;
  }

  void read_host(const xplane::Plane& plane) {
    for (const xplane::Line& line : plane.lines())
      for (const xplane::Event& event : line.events()) {
        const std::string_view name = name_of(plane, event);
        if (name != "MemoryAllocation" && name != "MemoryDeallocation") continue;
        const Stats stats = stats_of(plane, event);
        GpuMemory memory;
        memory.event = name == "MemoryAllocation" ? BlockEvent::kAlloc : BlockEvent::kFree;
        memory.time = time_of(line, event);
        memory.address = stats.number("addr");
        memory.size = stats.number("requested_bytes");
        if (memory.size <= 0) memory.size = stats.number("allocation_bytes");
        if (memory.size < 0) refuse("an event of an allocator has {} B; expected at least 0", memory.size);
        const std::string_view allocator = stats.text("allocator_name");
        memory.device = number_behind(allocator, "GPU_").value_or(0);
        memory.stream.stream = -1;
        memory.name = stats.text("tf_op");
        host_memory_[std::string{allocator}].push_back(std::move(memory));
      }
  }

  xplane::Space space_;  // names point into it
  GpuTimeline timeline_;
  std::map<std::string, std::vector<GpuMemory>> host_memory_;  // by allocator
};

Trace read(const Input& input, std::optional<std::size_t> device) {
  return naming(input.path(), [&] { return PlaneReader{input}.run(device); });
}

/// The first message is a plane, whose name comes within its first fields.
int sniff_xplane(std::string_view head) {
  if (!head.starts_with('\x0a')) return 0;
  const std::string_view first = head.substr(0, 64);
  const bool named = first.find("\x12") != std::string_view::npos &&
                     (first.find("/host:") != std::string_view::npos || first.find(kDevice) != std::string_view::npos);
  return named ? 90 : 0;
}

const RegisterImporter kXplane{{"xplane",
                                "profiles of XLA (JAX) and TensorFlow (*.xplane.pb)",
                                {".pb"},
                                sniff_xplane,
                                read_xplane,
                                read_xplane_device}};

}  // namespace

Trace read_xplane(const Input& input) { return read(input, std::nullopt); }

Trace read_xplane_device(const Input& input, std::size_t device) { return read(input, device); }

}  // namespace tidepool
