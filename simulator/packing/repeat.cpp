#include "simulator/packing/repeat.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "traces/copied.hpp"
#include "traces/error.hpp"

namespace tidepool {

Trace repeat_lifetimes(const Trace& trace, int times) {
  constexpr std::int64_t kMost = 50'000'000;
  const std::span<const Buffer> buffers = trace.buffers();
  const std::int64_t staying = std::count_if(
      buffers.begin(), buffers.end(), [](const Buffer& buffer) { return buffer.born_before && buffer.outlives; });
  const std::int64_t made = staying + times * (static_cast<std::int64_t>(buffers.size()) - staying);
  if (times < 1 || times > kMost || made > kMost)
    throw InputError{
        fmt::format("--iterations: '{}' makes {} buffers; expected 1 to {} iterations and at most {} buffers", times,
                    made, kMost, kMost)};
  TraceBuilder builder{trace.data().streams};
  std::vector<BufferId> now(buffers.size());
  const auto spec = [&](std::size_t id) { return copied(builder, trace, BufferId{id}); };
  for (int i = 0; i < times; ++i) {
    builder.mark(MarkKind::kIteration, std::to_string(i));
    for (std::size_t id = 0; id < buffers.size(); ++id) {
      if (!buffers[id].born_before || (i > 0 && buffers[id].outlives)) continue;
      now[id] = i == 0 ? builder.existing(spec(id)) : builder.alloc(spec(id));
    }
    for (const Step& step : trace.steps()) {
      if (step.kind == StepKind::kAlloc) now[step.id] = builder.alloc(spec(step.id));
      if (step.kind == StepKind::kFree) builder.free(now[step.id]);
    }
    for (std::size_t id = 0; id < buffers.size() && i + 1 < times; ++id)
      if (buffers[id].outlives && !buffers[id].born_before) builder.free(now[id]);
  }
  builder.meta() = trace.data().meta;
  return builder.finish();
}

}  // namespace tidepool
