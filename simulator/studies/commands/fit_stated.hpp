// What `tidepool fit` says of the memory that the allocator of a recorded job stated itself.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "simulator/studies/fit/fit.hpp"

namespace tidepool {

/// The effect of switching expandable segments on or off, as a sentence.
std::string allocator_text(const Fit& fit);

/// Where the reserved bytes come from, the settings in force, and peaks outside the trace; for people, with line ends.
std::string stated_text(const Trace& trace, const Fit& fit);

/// Adds reserved_peak_bytes, settings, failed_requests, sizes_from, ...
void add_stated(nlohmann::ordered_json& object, const Fit& fit);

/// Why a verdict is not for certain, or impossible, a sentence each.
std::vector<std::string> stated_notes(const Fit& fit);

}  // namespace tidepool
