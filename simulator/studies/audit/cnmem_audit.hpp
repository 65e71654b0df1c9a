// Comparison of a malloc/free log recorded under CnMem with the model of CnMem.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "simulator/pool.hpp"
#include "simulator/studies/audit/report.hpp"
#include "traces/trace.hpp"

namespace tidepool {

/// A segment that the device handed out, as logged.
struct LoggedSegment {
  Bytes address;
  double mebibytes = 0;  ///< logged with six significant digits, so the size in bytes is not exact
};

/// Reads one segment per line, "0x7062c0000 256" or "0x726e40000 8.00049": the address and the size in MiB.
/// @param path  for messages
/// @throws InputError  "list.txt:3: '0x70270000 x' is not a segment; expected an address and a size in MiB, as in
///                     0x7062c0000 256"
std::vector<LoggedSegment> parse_segments(const std::string& path, std::string_view text);

/// Replays the alloc and free steps of a trace with recorded addresses through CnMem and compares every address, up to
/// the first difference.
/// @param initial   size of CnMem's first segment
/// @param segments  the device's segments, in order. If empty, they are inferred: the first segment begins at the first
///                  address of the trace, each later segment at the block for which CnMem requests the segment
/// @throws InputError  for a trace without addresses
AuditReport audit_cnmem(const Trace& trace, Bytes initial, std::span<const LoggedSegment> segments);

}  // namespace tidepool
