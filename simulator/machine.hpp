// What a run is priced with: the device's memory, its links, and the cost of asking the driver for memory.
#pragma once

#include <string>
#include <vector>

#include "traces/quantity.hpp"

namespace tidepool {

/// One direction of the host link. A transfer of s bytes occupies it for latency + s / rate.
struct Link {
  BytesPerSecond rate{12'000'000'000};
  Nanos latency{10'000};
  Nanos time(Bytes size) const { return latency + transfer_time(size, rate); }
};

struct Machine {
  std::string name = {};
  Bytes capacity;                               ///< device memory
  Link h2d, d2h;                                ///< host to device, device to host
  BytesPerSecond device_copy{500'000'000'000};  ///< rate of a copy within device memory
  Nanos segment_alloc = {};                     ///< cudaMalloc: the device waits for the host this long
  Nanos segment_free = {};                      ///< cudaFree, likewise, after all streams and copies have ended
  Nanos page_map = {};                          ///< cuMemCreate, cuMemMap and cuMemSetAccess of one page, likewise
  Nanos page_unmap = {};                        ///< cuMemUnmap and cuMemRelease of one page, likewise
  std::string source = {};                      ///< where each number comes from; says "assumed" or "measured"
};

/// A machine by its fixed name (tidepool machines lists them) or from a JSON file, as simulator/MACHINES.md describes.
/// @throws InputError  for an unknown name (with the nearest known one) or a file that does not parse
Machine find_machine(const std::string& name_or_path);

/// Every machine with a fixed name, sorted by it.
const std::vector<Machine>& known_machines();

}  // namespace tidepool
