#include "traces/file/decode.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <span>
#include <utility>

#include "traces/base/error.hpp"
#include "traces/file/columns.hpp"
#include "traces/file/sections.hpp"

namespace tidepool::file {
namespace {

/// Appends `count` records and gives them to `code` to be filled in.
template <class Record, class Code>
void append(std::vector<Record>& records, std::size_t count, std::string_view raw, Section section,
            std::string_view record, Code code) {
  const std::size_t first = records.size();
  records.resize(first + count);
  ColumnReader columns{raw, name(section), record, first};
  code(columns, std::span{records}.subspan(first));
  columns.done();
}

/// Gives the lines of a frame to their buffers or ops, which came in earlier frames.
template <class Record>
void set_lines(std::vector<Record>& records, std::size_t count, std::string_view raw, Section section,
               std::string_view record) {
  std::vector<LineOf> lines;
  append(lines, count, raw, section, fmt::format("{} line", record), [](auto& c, auto r) { code_lines(c, r); });
  for (const LineOf& each : lines) {
    if (each.of >= records.size())
      throw InputError{fmt::format("the line of {} {} comes before the {} itself; there are {}", record, each.of,
                                   record, records.size())};
    records[each.of].line = each.line;
  }
}

}  // namespace

std::size_t most_records(Section section, std::size_t raw_size) {
  // Fewest bytes of one record, in the order of the sections; 0 for sections without records of their own.
  constexpr std::array<std::size_t, kSections> kLeast{1, 1, 1, 7, 3, 10, 3, 1, 3, 2, 1, 4, 0, 0, 3, 2, 2};
  const std::size_t least = kLeast[static_cast<std::size_t>(section)];
  return least == 0 ? 0 : raw_size / least;
}

std::size_t* count_of(Counts& counts, Section section) {
  switch (section) {
    case Section::kStrings:
      return &counts.strings;
    case Section::kStreams:
      return &counts.streams;
    case Section::kBuffers:
      return &counts.buffers;
    case Section::kVersions:
      return &counts.versions;
    case Section::kOps:
      return &counts.ops;
    case Section::kUses:
      return &counts.uses;
    case Section::kSteps:
      return &counts.steps;
    case Section::kMarks:
      return &counts.marks;
    case Section::kOrders:
      return &counts.orders;
    default:
      return nullptr;
  }
}

void Decoder::reserve(const Counts& expected) {
  data_.strings.reserve(expected.strings);
  data_.streams.reserve(expected.streams);
  data_.buffers.reserve(expected.buffers);
  data_.versions.reserve(expected.versions);
  data_.ops.reserve(expected.ops);
  data_.uses.reserve(expected.uses);
  data_.events.reserve(expected.steps);
  data_.marks.reserve(expected.marks);
  data_.orders.reserve(expected.orders);
}

void Decoder::take(Section section, std::size_t records, std::string_view raw) {
  if (complete_) throw InputError{fmt::format("the {} frame comes after the end of the trace", name(section))};
  if (records > most_records(section, raw.size()))
    throw InputError{
        fmt::format("the {} frame has {} bytes for {} records; expected more", name(section), raw.size(), records)};
  const auto add = [&](auto& array, std::string_view record, auto code) {
    append(array, records, raw, section, record, code);
  };
  switch (section) {
    case Section::kMeta:
      return texts(records, raw, meta_);
    case Section::kStrings:
      return texts(records, raw, data_.strings);
    case Section::kStreams:
      return texts(records, raw, data_.streams);
    case Section::kBuffers:
      return add(data_.buffers, "buffer", [](auto& c, auto r) { code_buffers(c, r); });
    case Section::kVersions:
      return add(data_.versions, "version", [](auto& c, auto r) { code_versions(c, r); });
    case Section::kOps:
      return add(data_.ops, "op", [](auto& c, auto r) { code_ops(c, r); });
    case Section::kUses:
      return add(data_.uses, "use", [](auto& c, auto r) { code_uses(c, r); });
    case Section::kSteps:
      return add(data_.events, "step", [](auto& c, auto r) { code_steps(c, r); });
    case Section::kMarks:
      return add(data_.marks, "mark", [](auto& c, auto r) { code_marks(c, r); });
    case Section::kOrders:
      return add(data_.orders, "order", [](auto& c, auto r) { code_orders(c, r); });
    case Section::kOutputs:
      return add(data_.outputs, "output", [](auto& c, auto r) { code_outputs(c, r); });
    case Section::kLosses: {
      std::vector<Losses> losses;
      add(losses, "losses", [](auto& c, auto r) { code_losses(c, r); });
      if (losses.size() == 1) data_.losses = losses[0];
      return;
    }
    case Section::kChunk:
      return chunk(raw);
    case Section::kEnd:
      complete_ = true;
      return;
    case Section::kBufferLines:
      return set_lines(data_.buffers, records, raw, section, "buffer");
    case Section::kOpLines:
      return set_lines(data_.ops, records, raw, section, "op");
    case Section::kIndex:
      throw InputError{"an index comes before the end of the trace"};
  }
}

void Decoder::texts(std::size_t records, std::string_view raw, std::vector<std::string>& texts) {
  ColumnReader columns{raw, "text", "text", texts.size()};
  std::vector<std::uint64_t> lengths;
  for (std::size_t i = 0; i < records; ++i) lengths.push_back(columns.get("length"));
  for (const std::uint64_t length : lengths) texts.emplace_back(columns.take(length, "text"));
  columns.done();
}

void Decoder::chunk(std::string_view raw) {
  ColumnReader columns{raw, "chunk", "chunk", chunks_};
  const Counts here = Counts::of(data_);
  for (const std::size_t count : here.all())
    if (const std::uint64_t said = columns.get("totals"); said != count)
      throw InputError{fmt::format("chunk {} says that {} records came before it; there are {}", chunks_, said, count)};
  columns.done();
  chunk_ = here;
  ++chunks_;
}

void Decoder::derive() {
  for (std::size_t i = 0; i < data_.versions.size(); ++i) {
    Version& version = data_.versions[i];
    const bool view = version.kind == VersionKind::kView && version.parent.valid();
    version.root = view ? data_.versions[version.parent.index()].root : VersionId{i};
  }
  std::uint64_t next_use = 0;
  for (Op& op : data_.ops) {
    op.first_use = static_cast<std::uint32_t>(next_use);
    next_use += op.last_use;
    if (next_use > std::numeric_limits<std::uint32_t>::max())
      throw InputError{fmt::format("op {}: more uses than the trace has", &op - data_.ops.data())};
    op.last_use = static_cast<std::uint32_t>(next_use);
  }
  for (Buffer& buffer : data_.buffers) buffer.outlives = true;
  std::uint32_t next_op = 0;
  for (Event& event : data_.events) {
    if (event.kind == EventKind::kRun) event.id = next_op++;
    if (event.kind == EventKind::kFree && event.id < data_.buffers.size()) data_.buffers[event.id].outlives = false;
  }
  for (std::size_t i = 0; i + 1 < meta_.size(); i += 2) data_.meta.insert_or_assign(meta_[i], meta_[i + 1]);
}

TraceData Decoder::finish() {
  derive();
  return std::move(data_);
}

TraceData Decoder::recover(const std::string& why) {
  // At least one record is lost: the one at which the file stops.
  std::size_t dropped = 1;
  const Counts here = Counts::of(data_);
  for (std::size_t i = 0; i < here.all().size(); ++i) dropped += here.all()[i] - chunk_.all()[i];
  data_.strings.resize(chunk_.strings);
  data_.streams.resize(chunk_.streams);
  data_.buffers.resize(chunk_.buffers);
  data_.versions.resize(chunk_.versions);
  data_.ops.resize(chunk_.ops);
  data_.uses.resize(chunk_.uses);
  data_.events.resize(chunk_.steps);
  data_.marks.resize(chunk_.marks);
  data_.orders.resize(chunk_.orders);
  derive();

  // As in TraceBuilder::finish: a buffer without a version gets an initial one, and live buffers become outputs.
  std::vector<VersionId> content(data_.buffers.size());
  for (std::size_t i = 0; i < data_.versions.size(); ++i) {
    const Version& version = data_.versions[i];
    if (version.kind != VersionKind::kView && version.buffer.index() < content.size())
      content[version.buffer.index()] = VersionId{i};
  }
  data_.outputs.clear();
  for (std::size_t i = 0; i < content.size(); ++i) {
    if (!content[i].valid()) {
      content[i] = VersionId{data_.versions.size()};
      data_.versions.push_back({BufferId{i}, VersionKind::kInitial, OpId{}, VersionId{}, content[i]});
    }
    if (data_.buffers[i].outlives) data_.outputs.push_back(content[i]);
  }
  data_.losses.dropped_records += static_cast<std::int64_t>(dropped);
  data_.meta["recovered"] = fmt::format("{} steps, to the last whole chunk; {}", chunk_.steps, why);
  return std::move(data_);
}

}  // namespace tidepool::file
