// Advice as JSON, for `advise --json` and the report.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "simulator/studies/advise/advise.hpp"

namespace tidepool {

/// {"base_peak_bytes": 9, "changes": [{"kind": "checkpoint", ...}], "notes": [...]}, the changes in their order.
nlohmann::ordered_json to_json(const Advice& advice);

/// Changes as one text, and back.
std::string text_of(const std::vector<Change>& changes);
std::vector<Change> changes_of(const std::string& text);

}  // namespace tidepool
