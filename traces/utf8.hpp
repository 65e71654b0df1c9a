// Texts that can be kept in traces, databases and JSON.
#pragma once

#include <string>

namespace tidepool {

bool is_utf8(const std::string& text);

}  // namespace tidepool
