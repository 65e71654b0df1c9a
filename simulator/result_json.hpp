// A row as JSON.
#pragma once

#include <string>

#include "simulator/result_row.hpp"

namespace tidepool {

/// One JSON object on one line, without a line end; what has no meaning is absent.
std::string to_json(const Row& row);

}  // namespace tidepool
