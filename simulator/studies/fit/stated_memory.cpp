#include "simulator/studies/fit/stated_memory.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cstdlib>
#include <string_view>

#include "simulator/engine/pools/caching_pool.hpp"
#include "traces/base/quantity.hpp"

namespace tidepool {
namespace {

/// The parts of "a:1,b:[256:1,512:2],c:True" by name.
std::map<std::string, std::string> parts_of(std::string_view settings) {
  std::map<std::string, std::string> parts;
  for (const std::string& part : split_list(settings))
    if (const std::size_t colon = part.find(':'); colon != std::string::npos)
      parts[part.substr(0, colon)] = part.substr(colon + 1);
  return parts;
}

}  // namespace

std::optional<AllocatorOptions> allocator_options(const std::string& settings) {
  const auto parts = parts_of(settings);
  const auto value_of = [&](const std::string& name) {
    const auto found = parts.find(name);
    return found == parts.end() ? std::string{} : found->second;
  };
  if (const std::string backend = value_of("backend"); !backend.empty() && backend != "native") return {};
  const bool expandable = value_of("expandable_segments") == "True";
  AllocatorOptions options{expandable ? "pytorch-expandable" : "pytorch", {}};
  for (const OptionInfo& option : caching_options()) {
    const std::string value = value_of(option.name + (option.unit == "bytes" ? "_mb" : ""));
    if (!value.empty()) options.values[option.name] = value + (option.unit == "bytes" ? "MiB" : "");
  }
  return options;
}

StatedMemory stated_memory(const Trace& trace) {
  const auto& meta = trace.data().meta;
  const auto text = [&](const std::string& key) {
    const auto found = meta.find(key);
    return found == meta.end() ? std::string{} : found->second;
  };
  const auto number = [&](const std::string& key) {
    const std::string value = text(key);
    std::int64_t count = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), count);
    return error == std::errc{} && end == value.data() + value.size() && count > 0 ? count : 0;
  };
  StatedMemory stated;
  stated.allocated = Bytes{number("allocated_peak_bytes")};
  stated.reserved = Bytes{number("reserved_peak_bytes")};
  stated.held = Bytes{number("held_peak_bytes")};
  stated.pinned = Bytes{number("pinned_peak_bytes")};
  stated.device_total = Bytes{number("device_total_bytes")};
  stated.told = Bytes{number("device_told_bytes")};
  stated.failed_request = Bytes{number("failed_request_bytes")};
  stated.failed_allocated = Bytes{number("failed_allocated_bytes")};
  stated.failed_requests = number("failed_requests");
  stated.asked_memory = number("asked_memory") > 0;
  stated.captured = number("captured_memory") > 0;
  stated.gave_back = number("freed_segments") > 0;
  stated.settings = text("setting.alloc_conf");
  if (stated.settings.empty()) stated.settings = text("allocator_conf");  // of a snapshot
  for (const auto& [key, value] : meta)
    if (key.starts_with("assumed_")) stated.assumed.push_back(value);
  const std::string failure = text("failure");
  const bool of_another_rank = stated.allocated > Bytes{} && !text("rank").empty();  // each has the reason of the job
  stated.ran_out = !failure.empty() && (stated.failed_requests > 0 ||
                                        (!of_another_rank && failure.find("OutOfMemoryError") != std::string::npos));
  stated.replayable = text("setting.no_caching").empty() && allocator_options(stated.settings).has_value();
  if (!stated.replayable) stated.reserved = Bytes{number("mapped_peak_bytes")};
  std::string fraction = text("setting.memory_fraction");
  if (fraction.empty())
    if (const auto parts = parts_of(stated.settings); parts.count("per_process_memory_fraction") > 0)
      fraction = parts.at("per_process_memory_fraction");
  if (const double share = std::strtod(fraction.c_str(), nullptr); share > 0 && share < 1) {
    stated.fraction = share;
    if (stated.told > Bytes{}) stated.device_total = stated.told;
  }
  return stated;
}

std::string outside_text(const Trace& trace) {
  const Bytes stated = stated_memory(trace).allocated, own = trace.ideal_peak();
  if (stated <= own + own / 100) return "";
  return fmt::format("the job's tensors take {} at most, outside of this trace, whose own peak is {}", to_text(stated),
                     to_text(own));
}

}  // namespace tidepool
