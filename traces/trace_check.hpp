// Checks of a trace: its ids exist, and its program could have happened.
#pragma once

#include "traces/base/quantity.hpp"

namespace tidepool {

struct TraceData;

/// Checks every record by itself: ids, ranges, texts, and sums that fit.
/// @throws InputError  naming the record, as in "buffer 97: size is -5; expected at least 0"
void check_records(const TraceData& data);

/// Walks through the program once and refuses impossible events. The records must be checked before.
/// @return             the largest sum of live bytes
/// @throws InputError  as in "op 388 reads buffer 41, which was freed before it (step 880)"
Bytes check_program(const TraceData& data);

}  // namespace tidepool
