// Tables of a trace, of one run of it, and of what differs between two recordings, for the page of a report.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <vector>

#include "simulator/studies/diff/compared.hpp"
#include "simulator/studies/report/data_blocks.hpp"
#include "simulator/studies/report/history.hpp"
#include "traces/trace.hpp"

namespace tidepool {

/// Buffers, ops and uses: {"buffers": table, "ops": table, "uses": table, "strings": text, ...}. The rows of `uses` are
/// in the order of the ops; column "uses" of an op is its number of rows.
nlohmann::ordered_json trace_data(const Trace& trace, DataBlocks& blocks);

/// Stays, spans of the lanes, and memory over time, each also in coarser levels of detail; the names of the lanes; the
/// times of phases and iterations. Addresses are those of the plan. If a pool reserves segments, address ranges outside
/// of the segments are left out; "breaks" has a pair for each such range: the shown and the true address of its end.
nlohmann::ordered_json run_data(const Trace& trace, const History& history, DataBlocks& blocks);

/// Memory over time in cells of one width.
struct MemoryLevel {
  Nanos cell;
  std::span<const MemoryPoint> points;
  std::vector<MemoryPoint> made;  ///< holds the points that are not the given ones
};

/// Levels of detail of memory over time, finest first; the given points must outlive them. They are exact in the first,
/// unless they are very many.
std::vector<MemoryLevel> memory_levels(std::span<const MemoryPoint> points, Nanos duration);
nlohmann::ordered_json memory_data(const std::vector<MemoryLevel>& levels, DataBlocks& blocks);

/// Live bytes of one of the traces, by difference: MemoryPoint::held has at 0 what is the same in both, and at i the
/// buffers of row i - 1; the last one has all further rows, if there are several. The time is the number of the place
/// in TraceDiff::places; what a trace has behind its last place comes at the number of places.
std::vector<MemoryPoint> difference_curve(const Compared& found, bool of_b);

/// The sentence and rows as `diff --json` has them, the names of the bands, both curves, and the names of the places.
nlohmann::ordered_json difference_data(const Compared& found, DataBlocks& blocks);

}  // namespace tidepool
