// Names of streams in the files of other programs, and the most streams that a reader accepts.
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <string>

namespace tidepool {

/// No program has so many streams, but a damaged file may claim them.
inline constexpr std::size_t kMostStreams = 4096;

/// "7" on device 0, or "1:7" on device 1: streams of other devices than 0 carry the device in their name.
inline std::string stream_name(std::int64_t device, std::int64_t stream) {
  return device == 0 ? fmt::format("{}", stream) : fmt::format("{}:{}", device, stream);
}

}  // namespace tidepool
