#include "traces/utf8.hpp"

#include <simdjson.h>

#include <algorithm>

namespace tidepool {

bool is_utf8(const std::string& text) {
  const auto ascii = [](char c) { return static_cast<unsigned char>(c) < 0x80; };
  return std::all_of(text.begin(), text.end(), ascii) || simdjson::validate_utf8(text.data(), text.size());
}

}  // namespace tidepool
