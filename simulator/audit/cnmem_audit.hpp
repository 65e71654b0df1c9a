// A malloc/free log that was recorded under CnMem against the model of it.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "simulator/audit/report.hpp"
#include "simulator/pool.hpp"
#include "traces/trace.hpp"

namespace tidepool {

/// A segment that the device handed out, as logged.
struct LoggedSegment {
  Bytes address;
  double mebibytes = 0;  ///< printed with six digits, so its last bytes are unknown
};

/// Reads one segment per line, "0x7062c0000 256" or "0x726e40000 8.00049": the address and the size in MiB.
/// @param path  for messages
/// @throws InputError  "list.txt:3: '0x70270000 x' is not a segment; expected an address and a size in MiB, as in
///                     0x7062c0000 256"
std::vector<LoggedSegment> parse_segments(const std::string& path, std::string_view text);

/// Replays the alloc and free steps of a trace with recorded addresses through CnMem and compares every address.
/// @param initial   size of CnMem's first segment
/// @param segments  what the device handed out, in order; if empty, the first address of the trace is taken for that of
///                  the first segment, and the address of a block that makes CnMem ask for more for that of the segment
/// @throws InputError  for a trace without addresses
AuditReport audit_cnmem(const Trace& trace, Bytes initial, std::span<const LoggedSegment> segments);

}  // namespace tidepool
