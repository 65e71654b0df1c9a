// Machine that a run is priced with: device memory, links, and the cost of asking the driver for memory.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "traces/quantity.hpp"

namespace tidepool {

/// How long a copy of one size was found to take.
struct TimedSize {
  Bytes size;
  Nanos time;
  bool operator==(const TimedSize&) const = default;
};

/// One direction of the host link. A copy takes its latency, in which no data moves, and then moves its data.
struct Link {
  BytesPerSecond rate{12'000'000'000};  ///< of data that moves one way only, beyond the last of `times`
  Nanos latency{10'000};                ///< also the time of an empty copy
  /// Measured copies by growing size and time; between two of them, and between `latency` and the first, time grows in
  /// proportion. Empty: latency + size / rate whatever the size.
  std::vector<TimedSize> times = {};
  /// What is left of the rate while data moves the other way too; 10^6: the directions do not disturb each other.
  std::int64_t duplex_ppm = 1'000'000;
  /// How much longer kernels take while data moves this way; of 10^6.
  std::int64_t slowdown_ppm = 0;

  /// Of a copy that has the link to itself, rounded up to a nanosecond.
  Nanos time(Bytes size) const;
  bool operator==(const Link&) const = default;
};

/// Pinned host memory for what is copied there, see HostPool.
struct HostMemory {
  Bytes capacity{std::int64_t{1} << 62};  ///< most that may be pinned; 2^62: no limit
  bool powers_of_two = false;             ///< a block has the size of the next power of two
  Nanos pin_latency = {};                 ///< the host is busy so long for every block that it pins,
  BytesPerSecond pin_rate = {};           ///< and longer by its size at this rate; 0: no longer
  bool operator==(const HostMemory&) const = default;
};

/// What lies beyond the host, see StorageTier: it takes the copies that the host has no room for.
struct Storage {
  Link write = {}, read = {};  ///< device to storage and back; rate, latency and times
  Bytes capacity = {};         ///< 0: there is none
  bool operator==(const Storage&) const = default;
};

/// What a copy is cut into: pieces of this size, the last one of what is left.
struct Cut {
  std::int64_t count = 1;
  Bytes size;
};

struct Machine {
  std::string name = {};
  Bytes capacity;                               ///< device memory
  Link h2d = {}, d2h = {};                      ///< host to device, device to host
  BytesPerSecond device_copy{500'000'000'000};  ///< rate of a copy within device memory
  Nanos segment_alloc = {};                     ///< cudaMalloc: the device waits for the host this long
  Nanos segment_free = {};                      ///< cudaFree, likewise, after all streams and copies have ended
  Nanos page_map = {};                          ///< cuMemCreate, cuMemMap and cuMemSetAccess of one page, likewise
  Nanos page_unmap = {};                        ///< cuMemUnmap and cuMemRelease of one page, likewise
  HostMemory host = {};
  Storage storage = {};
  Nanos launch = {};  ///< the host is busy so long launching a kernel, which cannot start before; 0: not in its way
  Nanos submit = {};  ///< and so long submitting a copy, or each piece of one
  Bytes chunk = {};   ///< copies are cut into pieces of so many bytes, or of 1/1024 if they would be more; 0: whole
  std::string source = {};  ///< where each number comes from; says "assumed" or "measured"
  Cut cut(Bytes copy) const;
  bool operator==(const Machine&) const = default;
};

/// A machine by its fixed name (tidepool machines lists them) or from a JSON file, as simulator/machine/MACHINES.md
/// describes.
/// @throws InputError  for an unknown name (with the nearest known one) or a file that does not parse
Machine find_machine(const std::string& name_or_path);

/// Every machine with a fixed name, sorted by it.
const std::vector<Machine>& known_machines();

}  // namespace tidepool
