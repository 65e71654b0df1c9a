#include "simulator/packing/repeat.hpp"

#include <fmt/format.h>

#include <string>
#include <vector>

#include "traces/copied.hpp"
#include "traces/error.hpp"

namespace tidepool {

Trace repeat_lifetimes(const Trace& trace, int times) {
  constexpr std::size_t kMost = 50'000'000;
  const std::span<const Buffer> buffers = trace.buffers();
  if (times < 1 || static_cast<std::size_t>(times) > kMost / (buffers.size() + 1))
    throw InputError{
        fmt::format("--iterations: '{}' makes {} buffers; expected at least 1 iteration and at most {} buffers", times,
                    static_cast<std::int64_t>(times) * static_cast<std::int64_t>(buffers.size()), kMost)};
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
