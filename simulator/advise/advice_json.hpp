// Advice as JSON, for `advise --json` and the report.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "simulator/advise/advise.hpp"

namespace tidepool {

/// {"base_peak_bytes": 9, "changes": [{"kind": "checkpoint", ...}], "notes": [...]}, the changes in their order.
nlohmann::ordered_json to_json(const Advice& advice);

}  // namespace tidepool
