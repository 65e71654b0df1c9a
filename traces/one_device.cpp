#include "traces/one_device.hpp"

#include <cstdint>
#include <set>

#include "traces/refuse.hpp"

namespace tidepool {

void require_one_device(const Trace& trace, std::string_view purpose) {
  std::set<std::uint16_t> devices;
  for (const Buffer& buffer : trace.buffers()) devices.insert(buffer.device);
  if (devices.size() > 1)
    refuse("the trace is of {} devices; expected one, as {} (tidepool import --device keeps one)", devices.size(),
           purpose);
}

}  // namespace tidepool
