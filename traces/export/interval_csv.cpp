// Lifetimes as intervals, the input of packing programs: id,lower,upper,size.
#include <fmt/format.h>

#include <iterator>

#include "traces/export/exporter.hpp"

namespace tidepool {
namespace {

/// One row for each buffer, in id order: it occupies `size` bytes during [lower, upper). Time 0 is before the first
/// step, step i happens at time i + 1, and buffers that outlive the trace end after its last step. So the largest load
/// is the ideal peak.
std::string to_interval_csv(const Trace& trace) {
  const auto steps = trace.events();
  std::vector<std::size_t> lower(trace.buffers().size(), 0), upper(trace.buffers().size(), steps.size() + 1);
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (steps[i].kind == EventKind::kAlloc) lower[steps[i].id] = i + 1;
    if (steps[i].kind == EventKind::kFree) upper[steps[i].id] = i + 1;
  }
  fmt::memory_buffer out;
  fmt::format_to(std::back_inserter(out), "id,lower,upper,size\n");
  for (std::size_t i = 0; i < trace.buffers().size(); ++i)
    fmt::format_to(std::back_inserter(out), "{},{},{},{}\n", i, lower[i], upper[i], trace.buffers()[i].size.count());
  return fmt::to_string(out);
}

const RegisterExporter kCsv{
    {.name = "csv", .summary = "lifetimes only: id,lower,upper,size, half-open, in steps", .write = to_interval_csv}};

}  // namespace
}  // namespace tidepool
