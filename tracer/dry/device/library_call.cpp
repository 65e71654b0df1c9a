#include "tracer/dry/device/library_call.hpp"

#include <algorithm>

namespace tidepool::dry {

void call_library(void* stream, const LibraryCall& call) {
  DryDevice& dry_device = DryDevice::get();
  dry_device.call(dry_device.stream(stream), call);
}

bool is_zero(const void* factor, std::size_t bytes) {
  const auto* const byte = static_cast<const unsigned char*>(factor);
  constexpr unsigned char kSign = 0x80;  // in the last byte of every floating-point type
  return std::all_of(byte, byte + bytes - 1, [](unsigned char each) { return each == 0; }) &&
         (byte[bytes - 1] & ~kSign) == 0;
}

}  // namespace tidepool::dry
