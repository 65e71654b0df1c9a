// Any bytes as a compressed input: decompressed, or refused with a message.
#include <cstdint>
#include <string_view>

#include "traces/base/error.hpp"
#include "traces/base/input.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tidepool;
  try {
    decompressed(Input{"fuzz.gz", {reinterpret_cast<const char*>(data), size}});
  } catch (const InputError&) {
  }
  return 0;
}
