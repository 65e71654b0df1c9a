#include "traces/synthetic/step_writer.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "traces/base/refuse.hpp"
#include "traces/names.hpp"

namespace tidepool {

Bytes checked_size(std::initializer_list<std::int64_t> factors) {
  std::int64_t product = 1;
  for (const std::int64_t factor : factors)
    if (__builtin_mul_overflow(product, factor, &product) || product > Total::kMost)
      refuse("a buffer of {} B; expected at most {} B", fmt::join(factors, " x "), Total::kMost);
  return Bytes{product};
}

StepWriter::StepWriter(const Roofline& roofline, const std::string& source) : roofline_{roofline} {
  builder_.meta()["source"] = source;
  builder_.meta()["time"] = "estimated";
}

BufferId StepWriter::existing(Bytes size, BufferKind kind) {
  sizes_.add(size.count(), "sizes");
  return builder_.existing({.size = size, .kind = kind});
}

BufferId StepWriter::alloc(Bytes size, BufferKind kind) {
  sizes_.add(size.count(), "sizes");
  return builder_.alloc({.size = size, .kind = kind});
}

void StepWriter::free(std::initializer_list<BufferId> ids) {
  for (const BufferId id : ids) builder_.free(id);
}

void StepWriter::op(std::string_view name, double flops, const std::vector<Touch>& touches) {
  Bytes moved;
  for (const Touch& touch : touches)
    moved += builder_.so_far().buffers[touch.buffer.index()].size * (touch.access == Access::kReadWrite ? 2 : 1);
  const double computed = std::ceil(flops * 1'000 / static_cast<double>(roofline_.flops_per_us));
  const double moved_in = static_cast<double>(moved.count()) * 1e9 / static_cast<double>(roofline_.memory_rate.count());
  if (std::max(computed, moved_in) >= static_cast<double>(Total::kMost))
    refuse("op '{}' takes {} ns or longer", name, Total::kMost);
  const Nanos duration =
      std::max({roofline_.least, Nanos{std::llround(computed)}, transfer_time(moved, roofline_.memory_rate)});
  durations_.add(duration.count(), "durations");
  builder_.run({.name = builder_.text(name), .module = builder_.text(module_), .phase = phase_, .duration = duration},
               touches);
}

void StepWriter::module(const std::string& path) { module_ = path; }

void StepWriter::phase(Phase phase) {
  phase_ = phase;
  builder_.mark(MarkKind::kPhase, word(phase));
}

void StepWriter::iteration() { builder_.mark(MarkKind::kIteration, "0"); }

}  // namespace tidepool
