// The addresses of a run at one moment, as text: what lies where, and which holes are between.
#pragma once

#include <optional>
#include <string>

#include "simulator/report/history.hpp"
#include "simulator/report/view.hpp"
#include "traces/trace.hpp"

namespace tidepool {

/// The moment at which an op begins for the first time; none if it does not run in the history.
std::optional<Nanos> begin_of(const History& history, OpId op);

/// The moment of the largest sum of bytes; the begin if nothing is ever in memory.
Nanos peak_moment(const History& history);

/// Addresses from 0 on, line by line, as many for each character: the letter of the kind of most bytes there, or a
/// point where nothing lies. Then the bytes, number and largest piece of each kind and of the holes. Holes end at the
/// capacity; without one, at the last address in use in the history. Of a pool that reserves segments, only these are
/// drawn, side by side, and holes are those in them.
/// @throws InputError  "--map: the pool ideal gives no addresses; expected one that does"
std::string address_map_text(const Trace& trace, const History& history, const RunSpec& spec, Nanos moment,
                             const ViewOptions& options);

}  // namespace tidepool
