#include "traces/summary.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "traces/base/quantity.hpp"
#include "traces/iteration.hpp"

namespace tidepool {
namespace {

Nanos recorded_span(const Trace& trace) {
  Nanos first = trace.ops().empty() ? Nanos{} : trace.ops()[0].start, last;
  for (const Op& op : trace.ops()) {
    if (op.start < Nanos{}) return {};
    first = std::min(first, op.start);
    last = std::max(last, op.start + op.duration);
  }
  return last - first;
}

/// The value of a key of the meta; empty if there is none.
std::string meta_of(const Trace& trace, const char* key) {
  const auto found = trace.data().meta.find(key);
  return found == trace.data().meta.end() ? std::string{} : found->second;
}

/// What is wrong with times of the CPU that recorded the ops; empty if they are not.
std::string caveat_of_cpu_times(const Trace& trace) {
  if (meta_of(trace, "time") != "measured" || meta_of(trace, "device") != "cpu") return {};
  return "op times are those of the CPU that recorded them, so copies over a GPU's link look free in comparison; "
         "`tidepool record --torch --times a100-40gb` estimates op times for a GPU";
}

}  // namespace

Summary summarize(const Trace& trace) {
  const TraceData& data = trace.data();
  Summary sum;
  sum.buffers = data.buffers.size();
  sum.versions = data.versions.size();
  sum.ops = data.ops.size();
  sum.uses = data.uses.size();
  sum.steps = data.events.size();
  sum.streams = data.streams.size();
  sum.ideal_peak = trace.ideal_peak();
  sum.span = recorded_span(trace);
  std::set<std::uint16_t> devices;
  for (const Buffer& buffer : data.buffers) {
    devices.insert(buffer.device);
    sum.bytes_of_kind[static_cast<std::size_t>(buffer.kind)] += buffer.size;
  }
  sum.devices = devices.size();
  for (const Version& version : data.versions) sum.views += version.kind == VersionKind::kView;
  for (const Op& op : data.ops) {
    sum.duration += op.duration;
    sum.kernels += op.kind == OpKind::kKernel;
    sum.copies += op.kind == OpKind::kCopy;
    sum.random_ops += op.random;
  }
  for (const Use& use : data.uses) ++sum.evidence[static_cast<std::size_t>(use.evidence)];
  sum.iterations = std::max<std::size_t>(complete_iterations(trace), 1);
  return sum;
}

std::string error_of_times(const Trace& trace) { return meta_of(trace, "times_error"); }

std::string caveat_of_times(const Trace& trace) {
  const std::string error = error_of_times(trace);
  if (error.empty()) return caveat_of_cpu_times(trace);
  return fmt::format("op times are estimates for {}: a step is off by {} in the mean", meta_of(trace, "times"), error);
}

Nanos issue_time(const Trace& trace) {
  if (error_of_times(trace).empty() || trace.ops().empty()) return {};
  std::int64_t issued = 0;
  Nanos before{-1};
  for (const Op& op : trace.ops()) {
    issued += op.launch < Nanos{} || op.launch != before;
    before = op.launch;
  }
  return Nanos{40'000 * issued / static_cast<std::int64_t>(trace.ops().size())};
}

std::vector<std::string> warnings(const Trace& trace) {
  const Losses& lost = trace.data().losses;
  std::vector<std::string> lines;
  const auto recovered = trace.data().meta.find("recovered");
  if (recovered != trace.data().meta.end()) lines.push_back("recovered " + recovered->second);
  const auto lacks = trace.data().meta.find("lacks");
  if (lacks != trace.data().meta.end()) lines.push_back("lacks " + lacks->second);
  const auto say = [&](std::int64_t count, const char* what) {
    if (count != 0) lines.push_back(fmt::format("{} {}", count, what));
  };
  say(lost.dropped_records, "or more records were lost");
  say(lost.unmatched_frees, lost.unmatched_frees == 1 ? "free of memory whose allocation was not seen"
                                                      : "frees of memory whose allocation was not seen");
  const bool is_dry = meta_of(trace, "mode").rfind("dry run", 0) == 0;
  if (!is_dry || meta_of(trace, "ops").empty())  // operators say what they use
    say(lost.unknown_pointers,
        lost.unknown_pointers == 1
            ? "value in kernel parameters looks like a device address but is in no recorded buffer"
            : "values in kernel parameters look like device addresses but are in no recorded buffer");
  if (lost.clock_residual_ns != 0 && !is_dry)  // the clock of a dry run is Tidepool's own
    lines.push_back(fmt::format("clocks of the recording differ by up to {} after they were aligned",
                                to_text(Nanos{lost.clock_residual_ns})));
  if (std::string caveat = caveat_of_cpu_times(trace); !caveat.empty()) lines.push_back(std::move(caveat));
  if (!trace.ops().empty() && !trace.buffers().empty() && trace.data().uses.empty())
    lines.push_back("no op says which buffers it uses: pools can be compared, swapping and recomputation cannot");
  return lines;
}

}  // namespace tidepool
