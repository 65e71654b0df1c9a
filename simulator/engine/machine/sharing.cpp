#include "simulator/engine/machine/sharing.hpp"

#include <algorithm>

namespace tidepool {
namespace {

/// Number of ranks in the group of `rank`, itself included, if each group has `devices` successive ranks.
std::int64_t sharers(std::int64_t devices, std::size_t rank, std::size_t ranks) {
  const auto group = static_cast<std::size_t>(devices);
  const std::size_t first = rank / group * group;
  return static_cast<std::int64_t>(std::min(group, ranks - first));
}

void divide(Link& link, std::int64_t parts) {
  if (parts == 1) return;
  link.rate = BytesPerSecond{std::max<std::int64_t>(link.rate.count() / parts, 1)};
  for (TimedSize& each : link.times) each.time = link.latency + (each.time - link.latency) * parts;
}

}  // namespace

Machine share_of(Machine machine, std::size_t rank, std::size_t ranks) {
  const std::int64_t on_link = sharers(machine.sharing.link, rank, ranks),
                     on_host = sharers(machine.sharing.host, rank, ranks);
  divide(machine.h2d, on_link);
  divide(machine.d2h, on_link);
  if (machine.storage.capacity > Bytes{}) {
    divide(machine.storage.write, on_host);
    divide(machine.storage.read, on_host);
    machine.storage.capacity = machine.storage.capacity / on_host;
  }
  if (machine.host.capacity != HostMemory{}.capacity) machine.host.capacity = machine.host.capacity / on_host;
  return machine;
}

}  // namespace tidepool
