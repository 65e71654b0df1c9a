// What differs between two recordings, for the report's page: both memory curves over the places of the program.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <vector>

#include "simulator/studies/diff/compared.hpp"
#include "simulator/studies/report/data_blocks.hpp"
#include "simulator/studies/report/history.hpp"

namespace tidepool {

/// Live bytes of one of the traces, by difference: MemoryPoint::held has at 0 what is the same in both, and at i the
/// buffers of row i - 1; the last one has all further rows, if there are several. The time is the number of the place
/// in TraceDiff::places; what a trace has behind its last place comes at the number of places.
std::vector<MemoryPoint> difference_curve(const Compared& found, bool of_b);

/// The sentence and rows as `diff --json` has them, the names of the bands, both curves, and the names of the places.
nlohmann::ordered_json difference_data(const Compared& found, DataBlocks& blocks);

}  // namespace tidepool
