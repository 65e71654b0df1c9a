// AutoSwap's published prediction from a log of block events: the authors' arithmetic, with its mistakes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "policies/planning/gaps/selection.hpp"
#include "traces/base/input.hpp"

namespace tidepool {

/// One event of a log "event block size time".
struct LoggedBlockEvent {
  std::string block;
  double size = 0;  ///< bytes
  double time = 0;  ///< ns since the first event
  bool allocates = false;
};

/// A log of three iterations of equal length, and the load after each of its events.
struct BlockLog {
  std::vector<LoggedBlockEvent> events;
  std::vector<double> load;  ///< bytes, by event

  std::size_t iteration() const { return events.size() / 3; }
};

/// Reads events such as "Malloc 0x2f38ba0 9437184 1234", and loads, one number in each line.
/// @throws InputError  "vec_block.csv:7: 'Malloc 0x1'; expected an event, a block, a size and a time"
///                     "load.csv:7: 'x'; expected a number of bytes"
///                     "load.csv: 9515 loads for 9516 events"
///                     "vec_block.csv: 9515 events; expected three iterations of equal length"
BlockLog read_block_log(const Input& events, const Input& loads);

/// The overhead in ns that the authors' program (junzhezhang/memInfoSwap, unit_functions.py) predicts for each limit,
/// for kDoa, kAoa, kWdoa or kSwdoa, with blocks of at least 1 MiB. Doubles are added in the program's order: equal to
/// the last bit.
///
/// The program differs from its paper in five ways. DOA ignores the swap-in. WDOA adds the load at the *number of the
/// candidate* instead of the load at each event, so it is this load times the number of the gap's events. The placing
/// of swap-ins compares with the clock of the previous iteration, so hardly any copy waits for another. A swap-out that
/// would exceed the limit ends early, and its bytes are subtracted twice at the event where it would have ended. A
/// swap-in that does not fit is delayed in the load, even beyond its due event, but not on the lane.
/// @param limits  bytes
std::vector<double> published_overheads(const BlockLog& log, GapScore score, const std::vector<double>& limits);

}  // namespace tidepool
