// Any bytes as an SQLite export of Nsight Systems: read or refused, nothing else.
#include "traces/error.hpp"
#include "traces/import/readers.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    tidepool::read_nsys(tidepool::Input{"fuzz.sqlite", {reinterpret_cast<const char*>(data), size}});
  } catch (const tidepool::InputError&) {
  }
  return 0;
}
