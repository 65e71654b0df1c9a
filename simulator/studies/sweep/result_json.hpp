// Rows of results as JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "simulator/studies/sweep/result_row.hpp"

namespace tidepool {

/// One JSON object on one line, without a line end; values without a meaning are absent.
std::string to_json(const Row& row);

/// The row as a JSON object.
nlohmann::ordered_json to_json_object(const Row& row);

/// One value; null if it has no meaning.
nlohmann::ordered_json to_json_value(const Value& value);

}  // namespace tidepool
