// Model of a machine: device memory, links, and the time of calls to the driver.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "traces/base/quantity.hpp"

namespace tidepool {

class Trace;

/// The measured time of a copy of one size.
struct TimedSize {
  Bytes size;
  Nanos time;
  bool operator==(const TimedSize&) const = default;
};

/// One direction of the host link. A copy first takes the latency, in which no data moves; then its data moves.
struct Link {
  /// While no data moves the other way. If `times` is given, only for the bytes of a copy beyond its last size.
  BytesPerSecond rate{12'000'000'000};
  Nanos latency{10'000};  ///< also the time of an empty copy
  /// Measured copies, by growing size and time. Between two of them, and between an empty copy (`latency`) and the
  /// first, time is interpolated linearly. If empty, the time of every copy is latency + size / rate.
  std::vector<TimedSize> times = {};
  /// The part of the rate that is left while data moves the other way too, in ppm; 10^6: independent directions.
  std::int64_t duplex_ppm = 1'000'000;
  /// The share by which kernels take longer while data moves this way, in ppm.
  std::int64_t slowdown_ppm = 0;

  /// The time of a copy that has the link to itself, rounded up to a nanosecond.
  Nanos time(Bytes size) const;
  bool operator==(const Link&) const = default;
};

/// Pinned host memory for swapped versions, see HostPool.
struct HostMemory {
  Bytes capacity{std::int64_t{1} << 62};  ///< most that may be pinned; 2^62: no limit
  bool powers_of_two = false;             ///< a block has the size of the next power of two
  Nanos pin_latency = {};                 ///< time of the host for each block that it pins
  BytesPerSecond pin_rate = {};           ///< further time of the host: size / rate; 0: none
  bool operator==(const HostMemory&) const = default;
};

/// Storage behind the host, see StorageTier: it takes the copies for which the host has no memory.
struct Storage {
  Link write = {}, read = {};  ///< device to storage and back; only rate, latency and times are used
  Bytes capacity = {};         ///< 0: there is none
  bool operator==(const Storage&) const = default;
};

/// Devices that share parts of the machine, see share_of().
struct Sharing {
  std::int64_t link = 1;  ///< devices on one link to the host
  std::int64_t host = 1;  ///< devices of one host, which share its memory and its storage
  bool operator==(const Sharing&) const = default;
};

/// The pieces of a copy: `count` pieces of `size`; the last one may be smaller.
struct Cut {
  std::int64_t count = 1;
  Bytes size;
};

struct Machine {
  std::string name = {};
  Bytes capacity;                               ///< device memory
  Link h2d = {}, d2h = {};                      ///< host to device, device to host
  BytesPerSecond device_copy{500'000'000'000};  ///< rate of a copy within device memory
  Nanos segment_alloc = {};                     ///< time that the device waits for the host in a cudaMalloc
  Nanos segment_free = {};                      ///< the same in a cudaFree, after all streams and copies have ended
  Nanos page_map = {};                          ///< the same to map one page: cuMemCreate, cuMemMap and cuMemSetAccess
  Nanos page_unmap = {};                        ///< the same to unmap one page: cuMemUnmap and cuMemRelease
  HostMemory host = {};
  Storage storage = {};
  Sharing sharing = {};
  Nanos launch = {};        ///< time of the host to launch a kernel, which starts afterwards; 0: launches take no time
  Nanos submit = {};        ///< time of the host to submit a copy, or each piece of one
  Bytes chunk = {};         ///< size of the pieces of a copy; larger if there would be more than 1024; 0: not cut
  std::string source = {};  ///< the source of each number; says "assumed" or "measured"
  Cut cut(Bytes copy) const;  ///< the pieces of a copy of this size
  bool operator==(const Machine&) const = default;
};

/// A machine by its fixed name (tidepool machines lists them) or from a JSON file, as
/// simulator/engine/machine/MACHINES.md describes.
/// @throws InputError  for an unknown name (with the nearest known one) or a file that does not parse
Machine find_machine(const std::string& name_or_path);

/// The machine as a run of the trace uses it: its host takes at least issue_time() to launch an op.
Machine issuing(Machine machine, const Trace& trace);

/// Every known machine, sorted by name.
const std::vector<Machine>& known_machines();

}  // namespace tidepool
