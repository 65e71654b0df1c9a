// A run in the JSON form of Chrome's trace viewer. The categories and arguments are those of torch.profiler, so that
// Perfetto, the tools for torch.profiler's traces, and import --format kineto read it.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "traces/base/text.hpp"
#include "traces/export/exporter.hpp"
#include "traces/export/recording.hpp"

namespace tidepool {
namespace {

/// A time in microseconds, with all its nanoseconds; 0 if it is negative.
std::string us(Nanos time) {
  const std::int64_t ns = std::max<std::int64_t>(time.count(), 0);
  return fmt::format("{}.{:03}", ns / 1000, ns % 1000);
}

std::string quoted(const std::string& text) { return json_text(nlohmann::json(text)); }

class ChromeWriter {
 public:
  explicit ChromeWriter(const Recording& recording) : recording_{recording}, lanes_{lane_numbers(recording)} {}

  std::string run() {
    put("{{\"schemaVersion\": 1, \"displayTimeUnit\": \"ns\", \"deviceProperties\": [");
    const auto device = recording_.meta.find("device");
    if (device != recording_.meta.end()) put("{{\"id\": 0, \"name\": {}}}", quoted(device->second));
    put("], \"traceEvents\": [\n{{\"ph\": \"M\", \"name\": \"process_name\", \"pid\": {}, \"tid\": 0, \"args\": "
        "{{\"name\": \"host\"}}}}",
        kHost);
    std::set<std::pair<std::uint16_t, StreamId>> used;
    for (const RecordedOp& op : recording_.ops) used.emplace(op.device, op.stream);
    for (const auto& [on, lane] : used)
      put(",\n{{\"ph\": \"M\", \"name\": \"thread_name\", \"pid\": {}, \"tid\": {}, \"args\": {{\"name\": {}}}}}", on,
          lanes_[lane.index()], quoted("stream " + recording_.lanes[lane.index()]));
    for (const RecordedRange& range : recording_.ranges)
      put(",\n{{\"ph\": \"X\", \"cat\": \"user_annotation\", \"name\": {}, \"pid\": {}, \"tid\": 1, \"ts\": {}, "
          "\"dur\": {}, "
          "\"args\": {{}}}}",
          quoted(range.name), kHost, us(range.start), us(range.end - range.start));
    for (std::size_t i = 0; i < recording_.ops.size(); ++i) write_op(i);
    write_memory();
    put("\n]}}\n");
    return fmt::to_string(out_);
  }

 private:
  static constexpr int kHost = 1 << 20;  // a process id that is not the number of a device

  template <class... Args>
  void put(fmt::format_string<Args...> text, Args&&... args) {
    fmt::format_to(std::back_inserter(out_), text, std::forward<Args>(args)...);
  }

  void write_op(std::size_t index) {
    const RecordedOp& op = recording_.ops[index];
    const char* category = op.kind == OpKind::kCopy     ? "gpu_memcpy"
                           : op.kind == OpKind::kMemset ? "gpu_memset"
                                                        : "kernel";
    const std::int64_t lane = lanes_[op.stream.index()];
    put(",\n{{\"ph\": \"X\", \"cat\": \"{}\", \"name\": {}, \"pid\": {}, \"tid\": {}, \"ts\": {}, \"dur\": {}, "
        "\"args\": "
        "{{\"device\": {}, \"stream\": {}, \"correlation\": {}}}}}",
        category, quoted(op.name), op.device, lane, us(op.start), us(op.duration), op.device, lane, index + 1);
    put(",\n{{\"ph\": \"X\", \"cat\": \"cuda_runtime\", \"name\": \"launch\", \"pid\": {}, \"tid\": 1, \"ts\": {}, "
        "\"dur\": 0, "
        "\"args\": {{\"correlation\": {}}}}}",
        kHost, us(op.launch), index + 1);
    put(",\n{{\"ph\": \"s\", \"cat\": \"ac2g\", \"name\": \"ac2g\", \"id\": {0}, \"pid\": {1}, \"tid\": 1, \"ts\": "
        "{2}}},\n"
        "{{\"ph\": \"f\", \"bp\": \"e\", \"cat\": \"ac2g\", \"name\": \"ac2g\", \"id\": {0}, \"pid\": {3}, \"tid\": "
        "{4}, "
        "\"ts\": {5}}}",
        index + 1, kHost, us(op.launch), op.device, lane, us(op.start));
  }

  void write_memory() {
    std::map<std::uint16_t, std::int64_t> allocated;
    for (const RecordedBlock& block : recording_.existing) allocated[block.device] += block.size.count();
    for (const RecordedBlock& event : recording_.memory) {
      const bool frees = event.action == RecordedAction::kFree;
      if (!frees && event.action != RecordedAction::kAlloc) continue;
      const std::int64_t bytes = frees ? -event.size.count() : event.size.count();
      std::int64_t& total = allocated[event.device] += bytes;
      put(",\n{{\"ph\": \"i\", \"cat\": \"cpu_instant_event\", \"s\": \"t\", \"name\": \"[memory]\", \"pid\": {}, "
          "\"tid\": 1, "
          "\"ts\": {}, \"args\": {{\"Device Type\": 1, \"Device Id\": {}, ",
          kHost, us(event.time), event.device);
      if (event.address >= 0) put("\"Addr\": {}, ", event.address);
      put("\"Bytes\": {0}, \"Total Allocated\": {1}, \"Total Reserved\": {1}}}}},\n"
          "{{\"ph\": \"C\", \"name\": \"allocated on {2}\", \"pid\": {3}, \"tid\": 1, \"ts\": {4}, \"args\": "
          "{{\"bytes\": {1}}}}}",
          bytes, total, event.device, kHost, us(event.time));
    }
  }

  const Recording& recording_;
  const std::vector<std::int64_t> lanes_;  // numbers
  fmt::memory_buffer out_;
};

const RegisterExporter kChrome{{.name = "chrome",
                                .summary = "the timeline as torch.profiler's JSON, for chrome://tracing and Perfetto",
                                .write_recording = [](const Recording& run) { return ChromeWriter{run}.run(); }}};

}  // namespace
}  // namespace tidepool
