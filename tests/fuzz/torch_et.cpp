// Any bytes as an execution trace and, behind a zero byte, its profile: read or refused, nothing else.
#include <algorithm>

#include "traces/base/error.hpp"
#include "traces/import/readers.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view all{reinterpret_cast<const char*>(data), size};
  const std::size_t end = std::min(all.find('\0'), size);
  const tidepool::Input nodes{"fuzz.json", all.substr(0, end)};
  try {
    if (end == size)
      tidepool::read_torch_et(nodes);
    else
      tidepool::read_torch_et_with(nodes, tidepool::Input{"profile.json", all.substr(end + 1)}, {});
  } catch (const tidepool::InputError&) {
  }
  return 0;
}
