// Map of a run's addresses at one moment, as text: the kinds of the buffers, and the holes between them.
#pragma once

#include <optional>
#include <string>

#include "simulator/studies/report/history.hpp"
#include "simulator/studies/report/view.hpp"
#include "traces/trace.hpp"

namespace tidepool {

/// The moment at which an op begins for the first time; none if it does not run in the history.
std::optional<Nanos> begin_of(const History& history, OpId op);

/// The moment of the largest sum of bytes; the beginning of the history if nothing is ever in memory.
Nanos peak_moment(const History& history);

/// A map of addresses from 0 on, line by line. Each character stands for the same number of bytes: it is the letter of
/// the kind that has most of them, or a point if all are free. A table below the map has the bytes, the number of
/// pieces and the largest piece of each kind and of the holes. The last hole ends at the capacity; without a capacity,
/// at the last address in use in the history. If the pool reserves segments, only the segments are drawn, side by side,
/// with the holes within them.
/// @throws InputError  "--map: the pool ideal gives no addresses; expected one that does"
std::string address_map_text(const Trace& trace, const History& history, const RunSpec& spec, Nanos moment,
                             const ViewOptions& options);

}  // namespace tidepool
