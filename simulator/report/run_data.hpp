// Tables of a trace and of one run of it, for the report's page.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "simulator/report/data_blocks.hpp"
#include "simulator/report/history.hpp"
#include "traces/trace.hpp"

namespace tidepool {

/// Buffers, ops and uses: {"buffers": table, "ops": table, "uses": table, "strings": text, ...}. `uses` of a buffer are
/// in the order of the ops; an op has as many as its column "uses" says.
nlohmann::ordered_json trace_data(const Trace& trace, DataBlocks& blocks);

/// Stays, spans of the lanes, memory over time and their coarser levels; lanes, phases and iterations by name and time.
/// Addresses are as placed, except that gaps which no place ever touches are left out where a pool reserves segments;
/// "breaks" says where: pairs of the address shown and the true one.
nlohmann::ordered_json run_data(const Trace& trace, const History& history, DataBlocks& blocks);

}  // namespace tidepool
