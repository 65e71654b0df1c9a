// Any bytes in any form that is recognised by its first bytes: read or refused, nothing else.
#include "traces/base/error.hpp"
#include "traces/import/importer.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    tidepool::load_trace(tidepool::Input{"fuzz", {reinterpret_cast<const char*>(data), size}});
  } catch (const tidepool::InputError&) {
  }
  return 0;
}
