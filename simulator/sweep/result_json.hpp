// A row as JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "simulator/sweep/result_row.hpp"

namespace tidepool {

/// One JSON object on one line, without a line end; what has no meaning is absent.
std::string to_json(const Row& row);

/// The same as an object.
nlohmann::ordered_json to_json_object(const Row& row);

/// One value, null where it has no meaning.
nlohmann::ordered_json to_json_value(const Value& value);

}  // namespace tidepool
