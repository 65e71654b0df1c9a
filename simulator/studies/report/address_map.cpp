
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

#include "simulator/registry.hpp"
#include "simulator/studies/report/view.hpp"
#include "traces/base/refuse.hpp"
#include "traces/names.hpp"

namespace tidepool {
namespace {

constexpr std::size_t kRows = 16, kMargin = 10, kKinds = kKindLetters.size();

/// Sizes of the pieces of one kind, or of the holes.
struct Pieces {
  Bytes sum, largest;
  std::size_t count = 0;
  void add(Bytes size) {
    sum += size;
    largest = std::max(largest, size);
    ++count;
  }
};

/// A range of addresses that is drawn: the whole memory, or a segment that the pool has reserved. Segments are drawn
/// side by side.
struct Range {
  Bytes offset, size, drawn_at;
};

/// Joins adjacent ranges if a buffer lies across any border: the pool then maps pages, and adjacent pages are a
/// segment.
std::vector<Range> joined(const std::vector<Range>& ranges, const std::vector<const Stay*>& stays) {
  const auto lies_across = [&](Bytes border) {
    return std::any_of(stays.begin(), stays.end(),
                       [&](const Stay* stay) { return stay->offset < border && border < stay->offset + stay->held; });
  };
  const bool pages = std::any_of(ranges.begin(), ranges.end(),
                                 [&](const Range& range) { return lies_across(range.offset + range.size); });
  std::vector<Range> all;
  for (const Range& range : ranges)
    if (pages && !all.empty() && all.back().offset + all.back().size == range.offset)
      all.back().size += range.size;
    else
      all.push_back(range);
  return all;
}

/// The ranges at a moment, by address.
std::vector<Range> ranges_at(const History& history, const RunSpec& spec, Nanos moment,
                             const std::vector<const Stay*>& stays) {
  std::vector<Range> ranges;
  for (const ReservedSegment& segment : history.segments)
    if (segment.begin <= moment && (moment < segment.end || segment.end == history.end))
      ranges.push_back({segment.offset, segment.size, {}});
  if (history.segments.empty()) {
    Bytes end{1};
    for (const Stay& stay : history.stays) end = std::max(end, stay.offset + stay.held);
    ranges.push_back({{}, spec.capacity == kNoLimit ? end : std::max(end, spec.capacity), {}});
  }
  std::sort(ranges.begin(), ranges.end(), [](const Range& a, const Range& b) { return a.offset < b.offset; });
  ranges = joined(ranges, stays);
  Bytes drawn;
  for (Range& range : ranges) {
    range.drawn_at = drawn;
    drawn += range.size;
  }
  return ranges;
}

/// Stays at the moment, by address.
std::vector<const Stay*> stays_at(const History& history, Nanos moment) {
  std::vector<const Stay*> there;
  for (const Stay& stay : history.stays)
    if (stay.begin <= moment && (moment < stay.end || stay.leaving == Leaving::kStays)) there.push_back(&stay);
  std::sort(there.begin(), there.end(), [](const Stay* a, const Stay* b) { return a->offset < b->offset; });
  return there;
}

/// Calls visit(stay, where it is drawn) for the stays of a range.
void each_in(const Range& range, const std::vector<const Stay*>& stays, const auto& visit) {
  for (const Stay* stay : stays)
    if (range.offset <= stay->offset && stay->offset < range.offset + range.size)
      visit(*stay, stay->offset - range.offset + range.drawn_at);
}

/// By cell: the kind that has most of its bytes; kKinds if the cell is free.
std::vector<std::size_t> kinds_of_cells(const Trace& trace, const std::vector<Range>& ranges,
                                        const std::vector<const Stay*>& stays, Bytes cell, std::size_t cells) {
  std::vector<std::array<Bytes, kKinds>> held(cells);
  const auto fill = [&](const Stay& stay, Bytes first) {
    const auto kind = static_cast<std::size_t>(trace.buffer(stay.buffer).kind);
    for (Bytes from = first; from < first + stay.held;) {
      const auto at = static_cast<std::size_t>(from.count() / cell.count());
      const Bytes end = std::min(cell * static_cast<std::int64_t>(at + 1), first + stay.held);
      held[at][kind] += end - from;
      from = end;
    }
  };
  for (const Range& range : ranges) each_in(range, stays, fill);
  std::vector<std::size_t> kinds;
  for (const std::array<Bytes, kKinds>& each : held) {
    const auto most = std::max_element(each.begin(), each.end());
    kinds.push_back(*most == Bytes{} ? kKinds : static_cast<std::size_t>(most - each.begin()));
  }
  return kinds;
}

std::string row_text(std::string_view sign, std::string_view name, const Pieces& pieces, std::size_t kind,
                     bool colour) {
  return fmt::format("  {} {:<16}{:>10} in {:>5} piece{}, the largest {}\n",
                     kind < kKinds ? painted(sign, kind, colour) : std::string{sign}, name, to_text(pieces.sum),
                     pieces.count, pieces.count == 1 ? "" : "s", to_text(pieces.largest));
}

}  // namespace

std::optional<Nanos> begin_of(const History& history, OpId op) {
  for (const RunSpan& run : history.runs)
    if (run.op == op) return run.begin;
  return {};
}

Nanos peak_moment(const History& history) {
  const auto peak = std::max_element(history.memory.begin(), history.memory.end(),
                                     [](const MemoryPoint& a, const MemoryPoint& b) { return a.sum() < b.sum(); });
  return peak == history.memory.end() ? history.begin : peak->time;
}

std::string address_map_text(const Trace& trace, const History& history, const RunSpec& spec, Nanos moment,
                             const ViewOptions& options) {
  for (const Stay& stay : history.stays)
    if (stay.offset == kNoAddress)
      refuse("--map: the pool {} gives no addresses; expected one that does", names_of(spec).pool);
  const std::vector<const Stay*> stays = stays_at(history, moment);
  const std::vector<Range> ranges = ranges_at(history, spec, moment, stays);
  const Bytes top = ranges.empty() ? Bytes{1} : ranges.back().drawn_at + ranges.back().size;

  const std::size_t columns = options.width - kMargin - 2, cells = columns * kRows;
  const Bytes cell{(top.count() + static_cast<std::int64_t>(cells) - 1) / static_cast<std::int64_t>(cells)};
  const std::vector<std::size_t> kinds = kinds_of_cells(trace, ranges, stays, cell, cells);
  std::string out = fmt::format("each character is {}\n", to_text(cell));
  for (std::size_t row = 0; row < kRows && cell * static_cast<std::int64_t>(row * columns) < top; ++row) {
    const Bytes first = cell * static_cast<std::int64_t>(row * columns);
    out += fmt::format("{:>{}}{}", row % 4 == 0 ? to_text(first) : "", kMargin, options.utf8 ? "│" : "|");
    for (std::size_t at = row * columns; at < (row + 1) * columns; ++at) {
      if (cell * static_cast<std::int64_t>(at) >= top) break;
      out += kinds[at] == kKinds ? (options.utf8 ? "·" : ".")
                                 : painted(kKindLetters.substr(kinds[at], 1), kinds[at], options.colour);
    }
    out += '\n';
  }

  std::array<Pieces, kKinds> by_kind;
  Pieces holes;
  for (const Range& range : ranges) {
    Bytes end = range.drawn_at;
    each_in(range, stays, [&](const Stay& stay, Bytes first) {
      if (first > end) holes.add(first - end);
      end = std::max(end, first + stay.held);
      by_kind[static_cast<std::size_t>(trace.buffer(stay.buffer).kind)].add(stay.held);
    });
    if (const Bytes last = range.drawn_at + range.size; last > end) holes.add(last - end);
  }
  out += '\n';
  for (std::size_t k = 1; k <= kKinds; ++k)
    if (const std::size_t kind = k % kKinds; by_kind[kind].count > 0)
      out += row_text(kKindLetters.substr(kind, 1), words<BufferKind>()[kind], by_kind[kind], kind, options.colour);
  if (holes.count > 0) out += row_text(options.utf8 ? "·" : ".", "nothing", holes, kKinds, options.colour);
  if (!history.segments.empty())
    out += fmt::format("  {} in {} segment{}\n", to_text(ranges.empty() ? Bytes{} : top), ranges.size(),
                       ranges.size() == 1 ? "" : "s, which are drawn side by side");
  return out;
}

}  // namespace tidepool
