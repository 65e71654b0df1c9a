// A hash of the whole content of a trace.
#pragma once

#include <string>

namespace tidepool {

struct TraceData;

/// xxh3-64 of every field of every record, as 16 hexadecimal digits. Fields that follow from others are left out.
std::string trace_hash(const TraceData& data);

}  // namespace tidepool
