// Files that are one message of protobuf.
#pragma once

#include <limits>
#include <string_view>

#include "traces/base/input.hpp"
#include "traces/base/refuse.hpp"

namespace tidepool {

/// @param what  for the message, as in "a profile of pprof"
/// @throws InputError  "is damaged; expected a profile of pprof"
template <class Message>
Message parse_message(const Input& input, std::string_view what) {
  Message message;
  const std::string_view bytes = input.bytes();
  constexpr std::size_t kMost = std::numeric_limits<int>::max();
  if (bytes.size() > kMost) refuse("has more than 2 GiB; expected {}, which has less", what);
  if (!message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) refuse("is damaged; expected {}", what);
  return message;
}

}  // namespace tidepool
