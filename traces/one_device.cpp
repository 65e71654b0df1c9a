#include "traces/one_device.hpp"

#include <cstdint>
#include <set>

#include "traces/base/refuse.hpp"

namespace tidepool {

void require_one_device(const Trace& trace, std::string_view purpose) {
  std::set<std::uint16_t> devices;
  for (const Buffer& buffer : trace.buffers()) devices.insert(buffer.device);
  if (devices.size() > 1)
    refuse("the trace is of {} devices; expected one, as {} (tidepool import --device keeps one)", devices.size(),
           purpose);
}

bool lacks_uses(const Trace& trace) {
  return !trace.ops().empty() && !trace.buffers().empty() && trace.data().uses.empty();
}

void require_uses(const Trace& trace, std::string_view purpose) {
  if (lacks_uses(trace))
    refuse(
        "no op of the trace says which buffers it uses, so {}; expected a recording of `tidepool record --torch`, or "
        "of `record "
        "--dry --torch`",
        purpose);
}

}  // namespace tidepool
