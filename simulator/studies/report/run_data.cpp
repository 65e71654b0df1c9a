#include "simulator/studies/report/run_data.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>

#include "simulator/studies/report/pyramid.hpp"
#include "traces/base/text.hpp"
#include "traces/base/two_at_once.hpp"
#include "traces/names.hpp"
#include "traces/program_names.hpp"

namespace tidepool {
namespace {

using Json = nlohmann::ordered_json;

/// A table that is filled row by row.
class Rows {
 public:
  explicit Rows(std::vector<std::string_view> names) {
    for (const std::string_view name : names) columns_.push_back({name, {}});
  }
  void reserve(std::size_t rows) {
    for (DataColumn& column : columns_) column.values.reserve(rows);
  }
  template <class... Values>
  void add(Values... values) {
    std::size_t i = 0;
    (columns_[i++].values.push_back(static_cast<std::int64_t>(values)), ...);
  }
  const std::vector<DataColumn>& columns() const { return columns_; }

 private:
  std::vector<DataColumn> columns_;
};

/// The number of an id in the page's tables: the id plus one, or 0 for none.
template <class Id>
std::int64_t plus_one(Id id) {
  return id.valid() ? std::int64_t{id.value()} + 1 : 0;
}

/// The number of a text in the page's strings, the first of which is "".
std::int64_t text_or_empty(StringId id) { return id.valid() ? id.value() : 0; }

/// Addresses as the page shows them. With `close_gaps`, ranges without any place or segment are left out.
class ShownAddresses {
 public:
  ShownAddresses(const History& history, bool close_gaps) {
    if (!close_gaps) {
      for (const Stay& stay : history.stays)
        if (stay.offset != kNoAddress) extent_ = std::max(extent_, stay.offset + stay.held);
      return;
    }
    std::vector<std::pair<Bytes, Bytes>> used;
    for (const Stay& stay : history.stays)
      if (stay.offset != kNoAddress) used.emplace_back(stay.offset, stay.offset + stay.held);
    for (const ReservedSegment& segment : history.segments)
      used.emplace_back(segment.offset, segment.offset + segment.size);
    std::sort(used.begin(), used.end());
    Bytes end;
    for (const auto& [first, last] : used) {
      if (first > end) {
        shown_gaps_.emplace_back(first, (shown_gaps_.empty() ? Bytes{} : shown_gaps_.back().second) + (first - end));
        breaks_.push_back({(first - shown_gaps_.back().second).count(), first.count()});
      }
      end = std::max(end, last);
    }
    extent_ = end - (shown_gaps_.empty() ? Bytes{} : shown_gaps_.back().second);
  }

  Bytes of(Bytes address) const {
    const auto after = std::upper_bound(shown_gaps_.begin(), shown_gaps_.end(), address,
                                        [](Bytes a, const auto& gap) { return a < gap.first; });
    return after == shown_gaps_.begin() ? address : address - std::prev(after)->second;
  }
  Bytes extent() const { return extent_; }
  const std::vector<std::pair<std::int64_t, std::int64_t>>& breaks() const { return breaks_; }

 private:
  std::vector<std::pair<Bytes, Bytes>> shown_gaps_;  // (end of a gap, sum of the bytes left out up to there)
  std::vector<std::pair<std::int64_t, std::int64_t>> breaks_;
  Bytes extent_;
};

Json levels_of(const std::vector<Level>& levels, DataBlocks& blocks) {
  Json all = Json::array();
  for (const Level& level : levels) {
    Rows rows{{"begin", "length", "first", "height", "kind"}};
    for (const Tile& tile : level.tiles)
      rows.add(tile.begin / level.cell, (tile.end - tile.begin) / level.cell, tile.first.count(),
               (tile.last - tile.first).count(), tile.kind);
    all.push_back({{"cell_ns", level.cell.count()}, {"tiles", blocks.add_table(rows.columns())}});
  }
  return all;
}

Json memory_table(std::span<const MemoryPoint> points, DataBlocks& blocks) {
  std::vector<DataColumn> columns{{"time", {}}};
  for (const std::string_view kind : words<BufferKind>()) columns.push_back({kind, {}});
  for (const MemoryPoint& point : points) {
    columns[0].values.push_back(point.time.count());
    for (std::size_t i = 0; i < point.held.size(); ++i) columns[i + 1].values.push_back(point.held[i].count());
  }
  return blocks.add_table(columns);
}

enum class SpanKind : std::uint8_t { kRun, kAgain, kCopyOut, kCopyIn, kAllocator };

/// One activity of a lane, with the waiting time before it.
struct Span {
  std::int64_t lane = 0;
  SpanKind kind = SpanKind::kRun;
  std::int64_t subject = 0;  ///< the op of a run or the buffer of a copy, by plus_one()
  std::int64_t before = 0;   ///< of a copy: the op before which it was issued, by plus_one()
  Nanos issued, begin, end, waited;
  Cause cause = Cause::kNothing;
  Nanos exposed = {};
};

/// Spans in the order in which they, or the waits before them, begin. The time that compute waited for a version's
/// copies is only known for each direction as a whole, so the version's last copy in each direction gets this time.
std::vector<Span> spans_of(const Trace& trace, const History& history) {
  std::vector<Span> spans;
  const auto lanes = static_cast<std::int64_t>(trace.data().streams.size());
  for (const RunSpan& run : history.runs)
    spans.push_back({.lane = run.stream.value(),
                     .kind = !run.op.valid() ? SpanKind::kAllocator
                             : run.again     ? SpanKind::kAgain
                                             : SpanKind::kRun,
                     .subject = plus_one(run.op),
                     .before = 0,
                     .issued = run.begin - run.waited,
                     .begin = run.begin,
                     .end = run.end,
                     .waited = run.waited,
                     .cause = run.cause});
  std::vector<bool> told_in(trace.versions().size()), told_out(trace.versions().size());
  for (std::size_t i = history.copies.size(); i-- > 0;) {
    const CopySpan& copy = history.copies[i];
    const bool out = copy.direction == Direction::kOut;
    std::vector<bool>& told = out ? told_out : told_in;
    Nanos exposed;
    if (!told[copy.version.index()]) exposed = (out ? history.exposed_out : history.exposed_in)[copy.version.index()];
    told[copy.version.index()] = true;
    spans.push_back({.lane = lanes + (out ? 0 : 1) + (copy.storage ? 2 : 0),
                     .kind = out ? SpanKind::kCopyOut : SpanKind::kCopyIn,
                     .subject = plus_one(trace.version(copy.version).buffer),
                     .before = plus_one(copy.before),
                     .issued = copy.issued,
                     .begin = copy.begin,
                     .end = copy.end,
                     .waited = {},
                     .cause = Cause::kNothing,
                     .exposed = exposed});
  }
  std::stable_sort(spans.begin(), spans.end(),
                   [](const Span& a, const Span& b) { return a.begin - a.waited < b.begin - b.waited; });
  return spans;
}

/// Tiles of lanes for the coarser levels. The kind of a tile decides its colour: it is the span's kind or, for a wait,
/// 8 plus the cause.
std::vector<Tile> lane_tiles(const std::vector<Span>& spans) {
  std::vector<Tile> tiles;
  for (const Span& span : spans) {
    const Bytes lane{span.lane};
    if (span.waited > Nanos{})
      tiles.push_back({span.begin - span.waited, span.begin, lane, lane + Bytes{1},
                       static_cast<std::uint8_t>(8 + static_cast<int>(span.cause))});
    if (span.end > span.begin)
      tiles.push_back({span.begin, span.end, lane, lane + Bytes{1}, static_cast<std::uint8_t>(span.kind)});
  }
  return tiles;
}

Json lane_data(const Trace& trace, const History& history, DataBlocks& blocks) {
  const std::vector<Span> spans = spans_of(trace, history);
  Rows rows{{"lane", "kind", "subject", "before", "issued", "begin", "length", "waited", "cause", "exposed"}};
  bool storage = false;
  for (const Span& span : spans) {
    rows.add(span.lane, span.kind, span.subject, span.before, span.issued.count(), span.begin.count(),
             (span.end - span.begin).count(), span.waited.count(), span.cause, span.exposed.count());
  }
  for (const CopySpan& copy : history.copies) storage |= copy.storage;
  Json names = Json::array();
  const bool one = trace.data().streams.size() == 1;
  for (const std::string& stream : trace.data().streams)
    names.push_back(one ? "compute" : stream.empty() ? "stream" : "stream " + stream);
  names.push_back("to host");
  names.push_back("from host");
  if (storage) {
    names.push_back("to storage");
    names.push_back("from storage");
  }
  const std::vector<Tile> tiles = lane_tiles(spans);
  return {{"names", names},
          {"spans", blocks.add_table(rows.columns())},
          {"levels", levels_of(pyramid(tiles, history.end - history.begin, Bytes{}), blocks)}};
}

/// Begin and end of forward, backward and optimizer: {"phase": "forward", "begin_ns": 0, "end_ns": 5}. None if there
/// are more than kMost.
Json phase_spans(const Trace& trace, const History& history) {
  constexpr std::size_t kMost = 400;
  Json all = Json::array();
  Phase last = Phase::kUnknown;
  for (const RunSpan& run : history.runs) {
    if (!run.op.valid() || run.again) continue;
    const Phase phase = trace.op(run.op).phase;
    if (phase != Phase::kUnknown && phase == last) {
      all.back()["end_ns"] = run.end.count();
    } else if (phase != Phase::kUnknown) {
      all.push_back({{"phase", word(phase)}, {"begin_ns", run.begin.count()}, {"end_ns", run.end.count()}});
    }
    last = phase;
  }
  return all.size() > kMost ? Json::array() : all;
}

}  // namespace

/// Levels of memory over time, finest first. The first is exact, unless there are more than kMostExact changes.
std::vector<MemoryLevel> memory_levels(std::span<const MemoryPoint> points, Nanos duration) {
  constexpr std::size_t kMostExact = 1 << 18, kFew = 4096;
  std::vector<MemoryLevel> levels;
  if (points.size() <= kMostExact) levels.push_back({Nanos{1}, points, {}});
  for (Nanos cell{std::max<std::int64_t>(2, duration.count() / static_cast<std::int64_t>(kMostExact) * 2)};
       points.size() > kFew; cell = cell * 4) {
    std::vector<MemoryPoint> fewer = coarser(points, cell);
    if (fewer.size() * 2 > points.size() && fewer.size() > kFew && !levels.empty()) continue;
    points = fewer;  // the vector's memory stays where it is
    levels.push_back({cell, points, std::move(fewer)});
  }
  return levels;
}

Json memory_data(const std::vector<MemoryLevel>& levels, DataBlocks& blocks) {
  Json all = Json::array();
  for (const MemoryLevel& level : levels)
    all.push_back({{"cell_ns", level.cell.count()}, {"points", memory_table(level.points, blocks)}});
  return all;
}

Json trace_data(const Trace& trace, DataBlocks& blocks) {
  Rows buffers{{"kind", "size", "name", "maker", "before", "outlives", "line"}};
  const std::vector<OpId> makers = ops_they_are_for(trace);
  for (std::size_t i = 0; i < trace.buffers().size(); ++i) {
    const Buffer& buffer = trace.buffers()[i];
    buffers.add(buffer.kind, buffer.size.count(), buffer.name.value(), plus_one(makers[i]), buffer.born_before,
                buffer.outlives, text_or_empty(buffer.line));
  }
  Rows ops{{"name", "module", "kind", "phase", "duration", "random", "uses", "line"}};
  Rows uses{{"buffer", "access", "evidence"}};
  for (std::size_t i = 0; i < trace.ops().size(); ++i) {
    const Op& op = trace.ops()[i];
    ops.add(op.name.value(), op.module.value(), op.kind, op.phase, op.duration.count(), op.random,
            op.last_use - op.first_use, text_or_empty(op.line));
    for (const Use& use : trace.uses(OpId{i}))
      uses.add(trace.version(use.in.valid() ? use.in : use.out).buffer.value(), use.access, use.evidence);
  }
  return {{"buffers", blocks.add_table(buffers.columns())},
          {"ops", blocks.add_table(ops.columns())},
          {"uses", blocks.add_table(uses.columns())},
          {"strings", blocks.add_text(json_text(Json(trace.data().strings)))},
          {"buffer_kinds", words<BufferKind>()},
          {"op_kinds", words<OpKind>()},
          {"phases", words<Phase>()},
          {"accesses", words<Access>()},
          {"evidence", words<Evidence>()}};
}

Json run_data(const Trace& trace, const History& history, DataBlocks& blocks) {
  const ShownAddresses shown{history, !history.segments.empty()};
  Rows stays{{"buffer", "first", "height", "begin", "length", "arrival", "leaving", "arrived", "left", "room_for"}};
  stays.reserve(history.stays.size());
  std::vector<Tile> tiles;
  tiles.reserve(history.stays.size());
  bool addresses = false;
  for (const Stay& stay : history.stays) {
    const bool has = stay.offset != kNoAddress;
    addresses |= has;
    const Bytes first = has ? shown.of(stay.offset) : Bytes{};
    stays.add(stay.buffer.value(), first.count(), stay.held.count(), stay.begin.count(),
              (stay.end - stay.begin).count(), stay.arrival, stay.leaving, plus_one(stay.arrived_before),
              plus_one(stay.left_before), plus_one(stay.room_for));
    if (has)
      tiles.push_back(
          {stay.begin, stay.end, first, first + stay.held, static_cast<std::uint8_t>(trace.buffer(stay.buffer).kind)});
  }
  Rows segments{{"first", "height", "begin", "length"}};
  for (const ReservedSegment& segment : history.segments)
    segments.add(shown.of(segment.offset).count(), segment.size.count(), segment.begin.count(),
                 (segment.end - segment.begin).count());
  std::vector<MemoryLevel> memory;
  std::vector<Level> map;
  Json stays_table;
  two_at_once(
      [&] {
        stays_table = blocks.add_table(stays.columns());
        memory = memory_levels(history.memory, history.end - history.begin);
      },
      [&] { map = pyramid(tiles, history.end - history.begin, shown.extent()); });
  Json iterations = Json::array();
  for (const Nanos time : history.iterations) iterations.push_back(time.count());
  return {{"begin_ns", history.begin.count()},
          {"end_ns", history.end.count()},
          {"counted", history.counted},
          {"addresses", addresses},
          {"extent_bytes", shown.extent().count()},
          {"breaks", shown.breaks()},
          {"iterations_ns", iterations},
          {"phases", phase_spans(trace, history)},
          {"stays", std::move(stays_table)},
          {"segments", blocks.add_table(segments.columns())},
          {"map", levels_of(map, blocks)},
          {"memory", memory_data(memory, blocks)},
          {"lanes", lane_data(trace, history, blocks)}};
}

}  // namespace tidepool
