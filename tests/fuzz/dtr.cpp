// Any bytes as a DTR log: read or refused, nothing else.
#include "traces/base/error.hpp"
#include "traces/import/readers.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    tidepool::read_dtr(tidepool::Input{"fuzz.log", {reinterpret_cast<const char*>(data), size}});
  } catch (const tidepool::InputError&) {
  }
  return 0;
}
