#include "traces/file/writer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <utility>

#include "traces/base/error.hpp"
#include "traces/file/columns.hpp"
#include "traces/file/frame.hpp"
#include "traces/file/sections.hpp"

namespace tidepool {
namespace {

using file::Counts;
using file::Section;

constexpr std::size_t kChunkSteps = 16384;                // most steps of one chunk; its records fit a cache
constexpr std::size_t kFrameRecords = 65536;              // most records of one frame
constexpr std::size_t kFrameText = std::size_t{1} << 22;  // most bytes of text of one frame with several texts

/// The division of a whole trace into chunks: their last steps, and the part of each array that they need.
class Cuts {
 public:
  explicit Cuts(const Trace& trace) : trace_{trace}, data_{trace.data()}, all_{Counts::of(data_)} {
    upto_.streams = all_.streams;
  }

  bool more() const { return upto_.steps < all_.steps; }

  Counts next() {
    const std::size_t end = std::min(all_.steps, upto_.steps + kChunkSteps);
    for (; upto_.steps < end; ++upto_.steps) take(data_.events[upto_.steps]);
    const auto& marks = data_.marks;
    while (upto_.marks < marks.size() && marks[upto_.marks].event < upto_.steps) need(marks[upto_.marks++].name);
    while (upto_.orders < data_.orders.size() && data_.orders[upto_.orders].after.index() < upto_.ops) ++upto_.orders;
    for (; seen_versions_ < upto_.versions; ++seen_versions_) need(data_.versions[seen_versions_].buffer);
    for (; seen_buffers_ < upto_.buffers; ++seen_buffers_) {
      need(data_.buffers[seen_buffers_].name);
      need_line(data_.buffers[seen_buffers_].line);
    }
    return upto_;
  }

 private:
  void take(Event step) {
    if (step.kind == EventKind::kForget) return need(VersionId{step.id});
    if (step.kind != EventKind::kRun) return need(BufferId{step.id});
    const Op& op = data_.ops[step.id];
    need(op.name), need(op.module), need_line(op.line);
    ++upto_.ops;
    upto_.uses = op.last_use;
    for (const Use& use : trace_.uses(OpId{step.id})) need(use.in), need(use.out);
  }
  void need(VersionId id) {
    if (id.valid()) upto_.versions = std::max(upto_.versions, id.index() + 1);
  }
  void need(BufferId id) { upto_.buffers = std::max(upto_.buffers, id.index() + 1); }
  void need(StringId id) { upto_.strings = std::max(upto_.strings, id.index() + 1); }
  void need_line(StringId id) {
    if (id.valid()) need(id);
  }

  const Trace& trace_;
  const TraceData& data_;
  Counts all_, upto_;
  std::size_t seen_versions_ = 0, seen_buffers_ = 0;
};

}  // namespace

TraceFileWriter::TraceFileWriter(std::function<void(std::string_view)> write) : write_{std::move(write)} {
  std::string header{file::kMagic};
  file::store32(file::kVersion, header);
  file::store32(0, header);
  write_(header);
  offset_ = header.size();
}

void TraceFileWriter::frame(Section section, std::size_t records, std::string_view raw) {
  std::string bytes;
  file::append_frame(section, records, raw, bytes);
  index_.push_back({section, offset_, static_cast<std::uint32_t>(records)});
  offset_ += bytes.size();
  write_(bytes);
}

template <class Records, class Code>
void TraceFileWriter::section(Section section, const Records& records, std::size_t first, std::size_t last, Code code) {
  for (std::size_t begin = first; begin < last; begin += kFrameRecords) {
    const std::size_t count = std::min(kFrameRecords, last - begin);
    std::string raw;
    file::ColumnWriter columns{raw, begin};
    code(columns, std::span{records}.subspan(begin, count));
    frame(section, count, raw);
  }
}

template <class Records>
void TraceFileWriter::lines(Section section, const Records& records, std::size_t first, std::size_t last) {
  std::vector<file::LineOf> lines;
  for (std::size_t i = first; i < last; ++i)
    if (records[i].line.valid()) lines.push_back({static_cast<std::uint32_t>(i), records[i].line});
  this->section(section, lines, 0, lines.size(), [](auto& c, auto r) { file::code_lines(c, r); });
}

void TraceFileWriter::texts(Section section, const std::vector<std::string>& texts, std::size_t first,
                            std::size_t last) {
  while (first < last) {
    std::string lengths, bytes;
    file::ColumnWriter columns{lengths, first};
    std::size_t count = 0;
    for (; first < last && count < kFrameRecords && (count == 0 || bytes.size() + texts[first].size() <= kFrameText);
         ++count)
      columns.put(texts[first].size()), bytes += texts[first++];
    if (lengths.size() + bytes.size() > file::kMostRaw)
      throw InputError{fmt::format("{} {}: takes {} bytes with its length; a trace file holds at most {}",
                                   name(section), first - 1, lengths.size() + bytes.size(), file::kMostRaw)};
    frame(section, count, lengths + bytes);
  }
}

void TraceFileWriter::meta(const TraceData& data) {
  if (data.meta == meta_) return;
  std::vector<std::string> pairs;
  for (const auto& [key, value] : data.meta) pairs.push_back(key), pairs.push_back(value);
  texts(Section::kMeta, pairs, 0, pairs.size());
  meta_ = data.meta;
}

void TraceFileWriter::chunk(const TraceData& data, const Counts& end) {
  meta(data);
  texts(Section::kStrings, data.strings, done_.strings, end.strings);
  texts(Section::kStreams, data.streams, done_.streams, end.streams);
  section(Section::kBuffers, data.buffers, done_.buffers, end.buffers,
          [](auto& c, auto r) { file::code_buffers(c, r); });
  section(Section::kVersions, data.versions, done_.versions, end.versions,
          [](auto& c, auto r) { file::code_versions(c, r); });
  section(Section::kOps, data.ops, done_.ops, end.ops, [](auto& c, auto r) { file::code_ops(c, r); });
  section(Section::kUses, data.uses, done_.uses, end.uses, [](auto& c, auto r) { file::code_uses(c, r); });
  section(Section::kSteps, data.events, done_.steps, end.steps, [](auto& c, auto r) { file::code_steps(c, r); });
  section(Section::kMarks, data.marks, done_.marks, end.marks, [](auto& c, auto r) { file::code_marks(c, r); });
  section(Section::kOrders, data.orders, done_.orders, end.orders, [](auto& c, auto r) { file::code_orders(c, r); });
  lines(Section::kBufferLines, data.buffers, done_.buffers, end.buffers);
  lines(Section::kOpLines, data.ops, done_.ops, end.ops);
  std::string totals;
  file::ColumnWriter columns{totals, 0};
  for (const std::size_t count : end.all()) columns.put(count);
  frame(Section::kChunk, 0, totals);
  done_ = end;
}

void TraceFileWriter::append(const TraceData& data) { chunk(data, Counts::of(data)); }

void TraceFileWriter::finish(const Trace& trace) {
  const TraceData& data = trace.data();
  if (done_ == Counts{})
    for (Cuts cuts{trace}; cuts.more();) chunk(data, cuts.next());
  if (done_ != Counts::of(data)) chunk(data, Counts::of(data));
  section(Section::kOutputs, data.outputs, 0, data.outputs.size(), [](auto& c, auto r) { file::code_outputs(c, r); });
  section(Section::kLosses, std::vector{data.losses}, 0, 1, [](auto& c, auto r) { file::code_losses(c, r); });
  meta(data);
  frame(Section::kEnd, 0, "");

  std::string raw;
  file::ColumnWriter columns{raw, 0};
  std::uint64_t last = 0;
  for (const Entry& entry : index_) {
    columns.put(static_cast<std::uint64_t>(entry.section));
    columns.put(entry.offset - std::exchange(last, entry.offset));
    columns.put(entry.records);
  }
  const std::uint64_t index_offset = offset_;
  frame(Section::kIndex, index_.size(), raw);
  std::string trailer;
  file::store64(index_offset, trailer);
  trailer += file::kTrailerMark;
  write_(trailer);
}

std::string to_trace_file(const Trace& trace) {
  std::string bytes;
  TraceFileWriter writer{[&bytes](std::string_view next) { bytes += next; }};
  writer.finish(trace);
  return bytes;
}

}  // namespace tidepool
