// Tables of a trace and of one run of it, for the report's page.
#pragma once

#include <nlohmann/json_fwd.hpp>

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

}  // namespace tidepool
