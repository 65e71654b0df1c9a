#include "traces/builder.hpp"

#include <fmt/format.h>

#include "traces/base/error.hpp"

namespace tidepool {

TraceBuilder::TraceBuilder(const std::vector<std::string>& streams) {
  text("");
  for (const std::string& name : streams) stream(name);
}

StringId TraceBuilder::text(std::string_view value) {
  const auto [entry, added] = string_ids_.try_emplace(std::string{value}, StringId{data_.strings.size()});
  if (added) data_.strings.emplace_back(value);
  return entry->second;
}

StreamId TraceBuilder::stream(std::string_view name) {
  const auto [entry, added] = stream_ids_.try_emplace(std::string{name}, StreamId{data_.streams.size()});
  if (added) data_.streams.emplace_back(name);
  return entry->second;
}

VersionId TraceBuilder::add_version(Version version) {
  const VersionId id{data_.versions.size()};
  version.root = version.kind == VersionKind::kView ? data_.versions[version.parent.index()].root : id;
  data_.versions.push_back(version);
  return id;
}

VersionId TraceBuilder::content(BufferId id) {
  VersionId& current = current_[id.index()];
  if (!current.valid()) current = add_version({id, VersionKind::kInitial, OpId{}, VersionId{}, VersionId{}});
  return current;
}

BufferId TraceBuilder::existing(Buffer spec) {
  spec.born_before = true;
  const BufferId id = alloc(spec);
  data_.events.pop_back();
  content(id);
  return id;
}

BufferId TraceBuilder::alloc(Buffer spec) {
  const BufferId id{data_.buffers.size()};
  if (spec.size < Bytes{})
    throw InputError{fmt::format("buffer {}: size is {}; expected at least 0", id.value(), spec.size.count())};
  if (!spec.name.valid()) spec.name = text("");
  if (!spec.stream.valid()) spec.stream = StreamId{0};
  data_.buffers.push_back(spec);
  current_.emplace_back();
  live_.push_back(true);
  data_.events.push_back({EventKind::kAlloc, id.value()});
  return id;
}

void TraceBuilder::free(BufferId id) {
  if (!live(id)) throw InputError{fmt::format("free of buffer {}, which is not allocated", id.value())};
  content(id);
  live_[id.index()] = false;
  data_.events.push_back({EventKind::kFree, id.value()});
}

std::vector<VersionId> TraceBuilder::run(Op spec, const std::vector<Touch>& touches) {
  const OpId id{data_.ops.size()};
  if (spec.duration < Nanos{})
    throw InputError{fmt::format("op {}: duration is {}; expected at least 0", id.value(), spec.duration.count())};
  for (const Touch& touch : touches)
    if (!live(touch.buffer))
      throw InputError{fmt::format("op {} uses buffer {}, which is not allocated", id.value(), touch.buffer.value())};

  // Reads come before writes: every `in` is the version from before the op.
  std::vector<VersionId> found;
  for (const Touch& touch : touches) {
    const VersionId held = touch.access == Access::kWrite ? current(touch.buffer) : content(touch.buffer);
    found.push_back(touch.through.valid() ? touch.through : held);
  }

  spec.first_use = static_cast<std::uint32_t>(data_.uses.size());
  std::vector<VersionId> made;
  for (std::size_t i = 0; i < touches.size(); ++i) {
    const Touch& touch = touches[i];
    VersionId& current = current_[touch.buffer.index()];
    Use use{touch.access == Access::kWrite ? VersionId{} : found[i], VersionId{}, touch.access, touch.evidence};
    const bool made_already = current.valid() && data_.versions[current.index()].producer == id;
    if (touch.access == Access::kView)
      use.out = add_version({touch.buffer, VersionKind::kView, id, found[i], VersionId{}});
    else if (touch.access != Access::kRead && made_already)
      use.out = current;  // an op makes one new version of a buffer, even if it touches the buffer several times
    else if (touch.access == Access::kWrite)
      use.out = current = add_version({touch.buffer, VersionKind::kWrite, id, current, VersionId{}});
    else if (touch.access != Access::kRead)
      use.out = current = add_version({touch.buffer, VersionKind::kUpdate, id, current, VersionId{}});
    data_.uses.push_back(use);
    made.push_back(use.out);
  }
  spec.last_use = static_cast<std::uint32_t>(data_.uses.size());
  if (!spec.name.valid()) spec.name = text("");
  if (!spec.module.valid()) spec.module = text("");
  if (!spec.stream.valid()) spec.stream = StreamId{0};
  data_.ops.push_back(spec);
  data_.events.push_back({EventKind::kRun, id.value()});
  return made;
}

void TraceBuilder::forget(VersionId id) { data_.events.push_back({EventKind::kForget, id.value()}); }

void TraceBuilder::mark(MarkKind kind, std::string_view name) {
  data_.marks.push_back({static_cast<std::uint32_t>(data_.events.size()), kind, text(name)});
}

void TraceBuilder::order(OpId before, OpId after) { data_.orders.push_back({before, after}); }

void TraceBuilder::output(VersionId id) {
  only_given_outputs();
  data_.outputs.push_back(id);
}

Trace TraceBuilder::finish() {
  for (std::size_t i = 0; i < live_.size(); ++i) {
    const VersionId held = content(BufferId{i});
    data_.buffers[i].outlives = live_[i];
    if (live_[i] && !outputs_given_) data_.outputs.push_back(held);
  }
  Trace trace{std::move(data_)};
  *this = TraceBuilder{};
  return trace;
}

}  // namespace tidepool
