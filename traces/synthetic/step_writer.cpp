#include "traces/synthetic/step_writer.hpp"

#include <algorithm>
#include <cmath>

#include "traces/names.hpp"

namespace tidepool {

StepWriter::StepWriter(const Roofline& roofline, const std::string& source) : roofline_{roofline} {
  builder_.meta()["source"] = source;
  builder_.meta()["time"] = "estimated";
}

BufferId StepWriter::existing(Bytes size, BufferKind kind) { return builder_.existing({.size = size, .kind = kind}); }

BufferId StepWriter::alloc(Bytes size, BufferKind kind) { return builder_.alloc({.size = size, .kind = kind}); }

void StepWriter::free(std::initializer_list<BufferId> ids) {
  for (const BufferId id : ids) builder_.free(id);
}

void StepWriter::op(std::string_view name, double flops, const std::vector<Touch>& touches) {
  Bytes moved;
  for (const Touch& touch : touches)
    moved += builder_.so_far().buffers[touch.buffer.index()].size * (touch.access == Access::kReadWrite ? 2 : 1);
  const Nanos arithmetic{std::llround(std::ceil(flops * 1'000 / static_cast<double>(roofline_.flops_per_us)))};
  builder_.run({.name = builder_.text(name),
                .module = builder_.text(module_),
                .phase = phase_,
                .duration = std::max({roofline_.least, arithmetic, transfer_time(moved, roofline_.memory_rate)})},
               touches);
}

void StepWriter::module(const std::string& path) { module_ = path; }

void StepWriter::phase(Phase phase) {
  phase_ = phase;
  builder_.mark(MarkKind::kPhase, word(phase));
}

void StepWriter::iteration() { builder_.mark(MarkKind::kIteration, "0"); }

}  // namespace tidepool
