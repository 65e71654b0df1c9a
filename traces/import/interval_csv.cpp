// Lifetimes without a program, from a table with the columns id, lower, upper and size: see lifetimes.hpp.
#include <algorithm>
#include <vector>

#include "traces/builder.hpp"
#include "traces/import/importer.hpp"
#include "traces/import/lifetimes.hpp"
#include "traces/import/readers.hpp"

namespace tidepool {
namespace {

/// Ends come before beginnings at the same time; otherwise the order of the file decides.
Trace to_trace(const std::vector<Lifetime>& intervals) {
  std::vector<std::size_t> begins(intervals.size());
  for (std::size_t i = 0; i < begins.size(); ++i) begins[i] = i;
  std::vector<std::size_t> ends = begins;
  std::stable_sort(begins.begin(), begins.end(),
                   [&](std::size_t a, std::size_t b) { return intervals[a].lower < intervals[b].lower; });
  std::stable_sort(ends.begin(), ends.end(),
                   [&](std::size_t a, std::size_t b) { return intervals[a].upper < intervals[b].upper; });

  TraceBuilder builder;
  std::vector<BufferId> buffers(intervals.size());
  auto end = ends.begin();
  const auto end_until = [&](std::int64_t time) {
    for (; end != ends.end() && intervals[*end].upper <= time; ++end) builder.free(buffers[*end]);
  };
  for (const std::size_t i : begins) {
    end_until(intervals[i].lower);
    Buffer spec;
    spec.size = Bytes{intervals[i].size};
    spec.name = builder.text(intervals[i].id);
    buffers[i] = builder.alloc(spec);
  }
  if (!ends.empty()) end_until(intervals[ends.back()].upper);
  builder.meta()["source"] = "csv";
  return builder.finish();
}

int sniff_csv(std::string_view head) { return looks_like_lifetimes(head) ? 90 : 0; }

const RegisterImporter kCsv{
    {"csv", "lifetimes of buffers: id,lower,upper,size", {".csv"}, sniff_csv, read_interval_csv}};

}  // namespace

Trace read_interval_csv(const Input& input) { return to_trace(read_lifetimes(input, LifetimeColumns::kPlain).rows); }

}  // namespace tidepool
