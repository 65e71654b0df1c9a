#include <algorithm>
#include <bit>
#include <functional>
#include <string_view>

#include "traces/base/refuse.hpp"
#include "traces/base/text.hpp"
#include "traces/trace.hpp"
#include "traces/trace_check.hpp"

namespace tidepool {
namespace {

/// The sum of all sizes of a trace, and the sum of all its durations, are at most this, so that no sum of some of them
/// can overflow.
constexpr std::int64_t kMostSum = std::int64_t{1} << 62;
constexpr std::int64_t kMostTime = std::int64_t{1} << 61;  // of a start or launch, so that an op then has an end

template <class Tag>
[[noreturn]] void refuse_id(Id<Tag> id, std::size_t count, std::string_view record, std::size_t index,
                            std::string_view what) {
  if (!id.valid()) refuse("{} {}: no {}; expected one of the {} in the trace", record, index, what, count);
  refuse("{} {}: unknown {} {}; the trace has {}", record, index, what, id.value(), count);
}

template <class Tag>
void require(Id<Tag> id, std::size_t count, const char* record, std::size_t index, const char* what) {
  if (id.index() >= count) refuse_id(id, count, record, index, what);
}

/// Refuses a line of the user's code that is recorded with an empty text.
void check_line(const TraceData& d, StringId line, const char* record, std::size_t index) {
  if (!line.valid()) return;
  require(line, d.strings.size(), record, index, "string");
  if (d.strings[line.index()].empty())
    refuse("{} {}: its line is empty; expected one as in model.py:88", record, index);
}

/// Refuses texts that are not UTF-8, or that occur twice.
void check_texts(const std::vector<std::string>& texts, const char* record) {
  std::vector<std::uint32_t> table(std::bit_ceil(2 * texts.size() + 1), ~std::uint32_t{0});
  for (std::size_t i = 0; i < texts.size(); ++i) {
    if (!is_utf8(texts[i])) refuse("{} {}: is not UTF-8", record, i);
    std::size_t place = std::hash<std::string_view>{}(texts[i]) & (table.size() - 1);
    for (; table[place] != ~std::uint32_t{0}; place = (place + 1) & (table.size() - 1))
      if (texts[table[place]] == texts[i])
        refuse("{} {}: is the same as {} {}; expected each once", record, i, record, table[place]);
    table[place] = static_cast<std::uint32_t>(i);
  }
}

void check_buffers(const TraceData& d) {
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < d.buffers.size(); ++i) {
    const Buffer& buffer = d.buffers[i];
    if (buffer.size < Bytes{}) refuse("buffer {}: size is {}; expected at least 0", i, buffer.size.count());
    if (buffer.size.count() > kMostSum - sum)
      refuse("buffer {}: size is {}; all sizes together exceed 4 EiB", i, buffer.size.count());
    sum += buffer.size.count();
    if (buffer.address < -1)
      refuse("buffer {}: address is {}; expected at least 0, or -1 if not recorded", i, buffer.address);
    require(buffer.name, d.strings.size(), "buffer", i, "string");
    require(buffer.stream, d.streams.size(), "buffer", i, "stream");
    check_line(d, buffer.line, "buffer", i);
  }
}

void check_versions(const TraceData& d) {
  for (std::size_t i = 0; i < d.versions.size(); ++i) {
    const Version& version = d.versions[i];
    require(version.buffer, d.buffers.size(), "version", i, "buffer");
    if (version.producer.valid()) require(version.producer, d.ops.size(), "version", i, "op");
    const bool made = version.kind != VersionKind::kInitial;
    if (made != version.producer.valid())
      refuse("version {}: {} a producer", i, made ? "lacks" : "is initial and cannot have");
    if (version.parent.valid()) {
      require(version.parent, d.versions.size(), "version", i, "version");
      if (version.parent.index() >= i)
        refuse("version {}: its parent {} does not come before it", i, version.parent.value());
      if (d.versions[version.parent.index()].buffer != version.buffer)
        refuse("version {}: its parent {} belongs to another buffer", i, version.parent.value());
    } else if (version.kind == VersionKind::kUpdate || version.kind == VersionKind::kView) {
      refuse("version {}: an update or view needs a parent", i);
    }
    const VersionId root = version.kind == VersionKind::kView ? d.versions[version.parent.index()].root : VersionId{i};
    if (version.root != root) refuse("version {}: its root is {}; expected {}", i, version.root.value(), root.value());
  }
}

void check_ops(const TraceData& d) {
  std::uint32_t next_use = 0;
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < d.ops.size(); ++i) {
    const Op& op = d.ops[i];
    require(op.name, d.strings.size(), "op", i, "string");
    require(op.module, d.strings.size(), "op", i, "string");
    require(op.stream, d.streams.size(), "op", i, "stream");
    check_line(d, op.line, "op", i);
    if (op.duration < Nanos{}) refuse("op {}: duration is {}; expected at least 0", i, op.duration.count());
    if (op.duration.count() > kMostSum - sum)
      refuse("op {}: duration is {}; all durations together exceed 146 years", i, op.duration.count());
    sum += op.duration.count();
    for (const auto& [what, time] : {std::pair{"start", op.start}, std::pair{"launch", op.launch}})
      if (time < Nanos{-1} || time.count() > kMostTime)
        refuse("op {}: {} is {}; expected 0 to {}, or -1 if not recorded", i, what, time.count(), kMostTime);
    if (op.first_use != next_use || op.last_use < op.first_use || op.last_use > d.uses.size())
      refuse("op {}: uses {} to {}; expected to start at {} and end by {}", i, op.first_use, op.last_use, next_use,
             d.uses.size());
    next_use = op.last_use;
  }
  if (next_use != d.uses.size()) refuse("use {}: belongs to no op", next_use);
  for (std::size_t i = 0; i < d.uses.size(); ++i) {
    if (d.uses[i].in.valid()) require(d.uses[i].in, d.versions.size(), "use", i, "version");
    if (d.uses[i].out.valid()) require(d.uses[i].out, d.versions.size(), "use", i, "version");
  }
}

void check_order(const TraceData& d) {
  for (std::size_t i = 0; i < d.events.size(); ++i) {
    const Event& event = d.events[i];
    if (event.kind == EventKind::kRun)
      require(OpId{event.id}, d.ops.size(), "step", i, "op");
    else if (event.kind == EventKind::kForget)
      require(VersionId{event.id}, d.versions.size(), "step", i, "version");
    else
      require(BufferId{event.id}, d.buffers.size(), "step", i, "buffer");
  }
  for (std::size_t i = 0; i < d.marks.size(); ++i) {
    require(d.marks[i].name, d.strings.size(), "mark", i, "string");
    if (d.marks[i].event > d.events.size())
      refuse("mark {}: stands before step {}; the trace has {}", i, d.marks[i].event, d.events.size());
    if (i > 0 && d.marks[i].event < d.marks[i - 1].event) refuse("mark {}: not sorted by step", i);
  }
  for (std::size_t i = 0; i < d.orders.size(); ++i) {
    require(d.orders[i].before, d.ops.size(), "order", i, "op");
    require(d.orders[i].after, d.ops.size(), "order", i, "op");
    if (d.orders[i].before >= d.orders[i].after)
      refuse("order {}: op {} waits for op {}, which does not come before it", i, d.orders[i].after.value(),
             d.orders[i].before.value());
    if (i > 0 && d.orders[i].after < d.orders[i - 1].after) refuse("order {}: not sorted by the op that waits", i);
  }
  for (std::size_t i = 0; i < d.outputs.size(); ++i) require(d.outputs[i], d.versions.size(), "output", i, "version");
}

void check_losses(const Losses& lost) {
  const auto check = [](const char* what, std::int64_t count) {
    if (count < 0) refuse("losses: {} is {}; expected at least 0", what, count);
  };
  check("dropped_records", lost.dropped_records);
  check("unmatched_frees", lost.unmatched_frees);
  check("unknown_pointers", lost.unknown_pointers);
  check("clock_residual_ns", lost.clock_residual_ns);
}

}  // namespace

void check_records(const TraceData& data) {
  if (data.strings.empty() || !data.strings[0].empty()) refuse("strings: the first one must be empty");
  if (data.streams.empty()) refuse("streams: none; a trace has at least one");
  check_texts(data.strings, "string");
  check_texts(data.streams, "stream");
  for (const auto& [key, value] : data.meta)
    if (!is_utf8(key) || !is_utf8(value)) refuse("meta '{}': is not UTF-8", is_utf8(key) ? key : "?");
  check_buffers(data);
  check_versions(data);
  check_ops(data);
  check_order(data);
  check_losses(data.losses);
}

}  // namespace tidepool
