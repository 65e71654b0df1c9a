#include "simulator/studies/audit/audit.hpp"

#include <fmt/format.h>

namespace tidepool {

DeviceAudit AuditReport::total() const {
  DeviceAudit sum;
  for (const DeviceAudit& device : devices) {
    sum.allocations += device.allocations;
    sum.matched += device.matched;
    sum.segment_allocations += device.segment_allocations;
    sum.segment_matched += device.segment_matched;
    sum.inferred_segments += device.inferred_segments;
    sum.segment_releases += device.segment_releases;
    sum.releases_matched += device.releases_matched;
    sum.out_of_memory += device.out_of_memory;
    sum.out_of_memory_matched += device.out_of_memory_matched;
    if (!sum.first_mismatch && device.first_mismatch)
      sum.first_mismatch = fmt::format("device {}: {}", device.device, *device.first_mismatch);
    if (sum.start_state == "determined" && device.start_state != "determined")
      sum.start_state = fmt::format("device {}: {}", device.device, device.start_state);
  }
  if (devices.empty()) sum.start_state = "no events are recorded";
  return sum;
}

}  // namespace tidepool
