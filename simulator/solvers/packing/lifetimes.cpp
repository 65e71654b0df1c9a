#include "simulator/solvers/packing/lifetimes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "traces/base/error.hpp"
#include "traces/builder.hpp"
#include "traces/copied.hpp"

namespace tidepool {

Trace repeat_lifetimes(const Trace& trace, int times) {
  constexpr std::int64_t kMost = 50'000'000;
  const std::span<const Buffer> buffers = trace.buffers();
  std::vector<std::size_t> new_each_time;  // all but those that stay
  for (std::size_t id = 0; id < buffers.size(); ++id)
    if (!buffers[id].born_before || !buffers[id].outlives) new_each_time.push_back(id);
  const std::int64_t made = std::ssize(buffers) + (times - 1) * std::ssize(new_each_time);
  if (times < 1 || times > kMost || made > kMost)
    throw InputError{
        fmt::format("--iterations: '{}' makes {} buffers; expected 1 to {} iterations and at most {} buffers", times,
                    made, kMost, kMost)};
  TraceBuilder builder{trace.data().streams};
  std::vector<BufferId> now(buffers.size());
  const auto spec = [&](std::size_t id) { return copied(builder, trace, BufferId{id}); };
  for (int i = 0; i < times; ++i) {
    builder.mark(MarkKind::kIteration, std::to_string(i));
    if (i == 0)
      for (std::size_t id = 0; id < buffers.size(); ++id)
        if (buffers[id].born_before) now[id] = builder.existing(spec(id));
    for (const std::size_t id : new_each_time)
      if (i > 0 && buffers[id].born_before) now[id] = builder.alloc(spec(id));
    for (const Event& event : trace.events()) {
      if (event.kind == EventKind::kAlloc) now[event.id] = builder.alloc(spec(event.id));
      if (event.kind == EventKind::kFree) builder.free(now[event.id]);
    }
    for (const std::size_t id : new_each_time)
      if (i + 1 < times && buffers[id].outlives) builder.free(now[id]);
  }
  builder.meta() = trace.data().meta;
  return builder.finish();
}

Instance instance_of(const LifetimeTable& table, Bytes alignment) {
  constexpr std::int64_t kMost = std::int64_t{1} << 61;
  Instance instance;
  for (const Lifetime& row : table.rows) {
    std::vector<Interval> lives;
    std::int64_t from = row.lower;
    for (const auto& [lower, upper] : row.gaps) {
      if (from < lower) lives.push_back({from, lower});
      from = upper;
    }
    if (from < row.upper) lives.push_back({from, row.upper});

    const std::size_t id = instance.items.size();
    const std::int64_t common = std::gcd(row.alignment, alignment.count());
    if (row.alignment / common > kMost / alignment.count())
      throw InputError{fmt::format("buffer {}: alignments of {} B and {} B have no common multiple below 2^61 B", id,
                                   row.alignment, alignment.count())};
    const Bytes size = alignment == 1_B ? Bytes{row.size} : std::max(round_up(Bytes{row.size}, alignment), alignment);
    Item& item = instance.add(size, lives);
    item.alignment = Bytes{row.alignment / common * alignment.count()};
    if (row.offset) item.fixed = Bytes{*row.offset};
  }
  return instance;
}

}  // namespace tidepool
