// Heap profiles of pprof, as JAX writes them (jax.profiler.save_device_memory_profile), and as the heap profilers of
// Go, tcmalloc and jemalloc do: bytes by call stack at one instant. Each sample is one buffer that exists before and
// after the trace; its name says of how many allocations it is the sum.
#include <fmt/format.h>
#include <schemas/pprof.pb.h>

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "traces/base/lines.hpp"
#include "traces/base/refuse.hpp"
#include "traces/base/total.hpp"
#include "traces/builder.hpp"
#include "traces/import/importer.hpp"
#include "traces/import/message.hpp"
#include "traces/import/readers.hpp"
#include "traces/import/recorded_names.hpp"

namespace tidepool {
namespace {

class ProfileReader {
 public:
  explicit ProfileReader(const Input& input) : profile_{parse_message<pprof::Profile>(input, "a profile of pprof")} {
    for (const pprof::Location& location : profile_.location()) locations_[location.id()] = &location;
    for (const pprof::Function& function : profile_.function()) functions_[function.id()] = &function;
  }

  Trace run() {
    const auto [bytes, count] = columns();
    Total total;
    for (const pprof::Sample& sample : profile_.sample()) {
      const std::int64_t size = value(sample, bytes);
      if (size < 0) refuse("a sample has {} B; expected at least 0", size);
      if (size == 0) continue;
      total.add(size, "sizes");
      Buffer spec;
      spec.size = Bytes{size};
      spec.device = device(label(sample, "device"));
      const Call call = call_of(sample);
      spec.line = builder_.text(call.line);
      const std::int64_t allocations = count < 0 ? 1 : value(sample, count);
      const std::string_view kind = label(sample, "kind");
      spec.name = builder_.text(name_of(kind.empty() || kind == "buffer" ? call.function : kind, allocations));
      builder_.existing(spec);
    }
    builder_.meta()["source"] = "pprof";
    builder_.meta()["lacks"] =
        "events: it has only what was allocated when the profile was taken, in sums by call stack";
    return builder_.finish();
  }

 private:
  struct Call {
    std::string line, function;
  };

  static std::string name_of(std::string_view name, std::int64_t allocations) {
    return allocations == 1 ? std::string{name} : fmt::format("{} x{}", name, allocations);
  }

  std::string_view text(std::int64_t index) const {
    if (index < 0 || index >= profile_.texts_size())
      refuse("names text {} of {}; expected one that it has", index, profile_.texts_size());
    return profile_.texts(static_cast<int>(index));
  }

  /// The columns of the samples' bytes that are alive, and of their number (-1: none).
  std::pair<int, int> columns() const {
    int bytes = -1, count = -1;
    for (int i = 0; i < profile_.sample_type_size(); ++i) {
      const std::string_view type = text(profile_.sample_type(i).type_text());
      const std::string_view unit = text(profile_.sample_type(i).unit_text());
      if (unit == "bytes" && (type == "space" || type == "inuse_space")) bytes = i;
      if (unit == "count" && (type == "allocations" || type == "objects" || type == "inuse_objects")) count = i;
    }
    if (bytes < 0) refuse("has no samples in bytes of type space or inuse_space; expected a profile of the heap");
    return {bytes, count};
  }

  static std::int64_t value(const pprof::Sample& sample, int column) {
    if (column >= sample.value_size())
      refuse("a sample has {} values; expected one for each type", sample.value_size());
    return sample.value(column);
  }

  std::string_view label(const pprof::Sample& sample, std::string_view key) const {
    for (const pprof::Label& each : sample.label())
      if (text(each.key_text()) == key) return text(each.value_text());
    return {};
  }

  /// The number of a device, as in "gpu:1"; 0 without one.
  static std::uint16_t device(std::string_view name) {
    const std::size_t colon = name.rfind(':');
    const std::optional<std::int64_t> number =
        colon == std::string_view::npos ? std::nullopt : parse_whole(name.substr(colon + 1));
    return number && *number > 0 && *number < kMostDevices ? static_cast<std::uint16_t>(*number) : std::uint16_t{0};
  }

  /// The innermost call in the user's own Python code; else, the innermost call.
  Call call_of(const pprof::Sample& sample) const {
    Call innermost;
    for (const std::uint64_t id : sample.location_id()) {
      const auto location = locations_.find(id);
      if (location == locations_.end()) refuse("a sample is at location {}, which is not in the file", id);
      for (const pprof::Line& line : location->second->line()) {
        const auto function = functions_.find(line.function_id());
        if (function == functions_.end())
          refuse("location {} is in function {}, which is not in the file", id, line.function_id());
        const std::string_view file = text(function->second->file_text());
        Call call{file.empty() ? "" : fmt::format("{}:{}", file, line.line()),
                  std::string{text(function->second->name_text())}};
        if (is_user_code(file)) return call;
        if (innermost.function.empty()) innermost = std::move(call);
      }
    }
    return innermost;
  }

  static constexpr std::int64_t kMostDevices = 1024;

  pprof::Profile profile_;
  std::map<std::uint64_t, const pprof::Location*> locations_;
  std::map<std::uint64_t, const pprof::Function*> functions_;
  TraceBuilder builder_;
};

/// The first field holds two numbers, the type and the unit of a value.
int sniff_pprof(std::string_view head) {
  const bool begins = head.size() > 5 && head[0] == '\x0a' && head[1] <= 10 && head[2] == '\x08' &&
                      head.substr(3, 4).find('\x10') != std::string_view::npos;
  return begins ? 90 : 0;
}

const RegisterImporter kPprof{{"pprof",
                               "heap profiles of pprof, as jax.profiler.save_device_memory_profile writes them",
                               {".prof", ".pb"},
                               sniff_pprof,
                               read_pprof}};

}  // namespace

Trace read_pprof(const Input& input) {
  return naming(input.path(), [&] { return ProfileReader{input}.run(); });
}

}  // namespace tidepool
