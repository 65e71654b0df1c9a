// JSON as every command prints it: on one line, and valid even if a file's name is not UTF-8.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace tidepool {

/// `json` on one line. Bytes that are not UTF-8, as in names of files, become U+FFFD.
template <typename Json>
std::string json_text(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace tidepool
