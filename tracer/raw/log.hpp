// Contents of a raw capture file, by kind of record and in the order of the file.
#pragma once

#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "tracer/raw/records.hpp"

namespace tidepool::raw {

/// A record with a tail: its uses are log.uses[first_use, first_use + record.uses).
template <class Record>
struct WithUses {
  Record record;
  std::size_t first_use = 0;
};

struct Log {
  std::string path;  ///< for messages
  FileHeader header;
  std::vector<std::string> texts{""};  ///< by Text; "" if the record of a text was lost
  std::vector<Info> infos;
  std::vector<ClockReading> clocks;
  std::vector<DeviceInfo> devices;
  std::vector<Context> contexts;
  std::vector<Stream> streams;
  std::vector<Memory> memory;
  std::vector<MemoryPool> pools;
  std::vector<FrameworkMemory> framework_memory;
  std::vector<Vmm> vmm;
  std::vector<Kernel> kernels;
  std::vector<Copy> copies;
  std::vector<Memset> memsets;
  std::vector<WithUses<Launch>> launches;
  std::vector<Api> apis;
  std::vector<Sync> syncs;
  std::vector<EventRecord> event_records;
  std::vector<Range> ranges;
  std::vector<WithUses<FrameworkOp>> ops;
  std::vector<External> externals;
  std::vector<Overhead> overheads;
  std::vector<Loss> losses;
  std::vector<Communicator> communicators;
  std::vector<Collective> collectives;
  std::vector<BufferUse> uses;
  std::uint64_t cut_off_bytes = 0;    ///< of an incomplete chunk or line at the end of the file
  std::uint64_t unknown_records = 0;  ///< of kinds of a later version

  /// "" for a number without a text.
  const std::string& text(Text id) const {
    const auto index = static_cast<std::size_t>(id);
    return texts[index < texts.size() ? index : 0];
  }
  Text add_text(std::string text) {
    texts.push_back(std::move(text));
    return Text{static_cast<std::uint32_t>(texts.size() - 1)};
  }
  /// Adds a record. The uses of a Launch or a FrameworkOp must be the last ones of `uses`.
  void add(const Info& r) { infos.push_back(r); }
  void add(const ClockReading& r) { clocks.push_back(r); }
  void add(const DeviceInfo& r) { devices.push_back(r); }
  void add(const Context& r) { contexts.push_back(r); }
  void add(const Stream& r) { streams.push_back(r); }
  void add(const Memory& r) { memory.push_back(r); }
  void add(const MemoryPool& r) { pools.push_back(r); }
  void add(const FrameworkMemory& r) { framework_memory.push_back(r); }
  void add(const Vmm& r) { vmm.push_back(r); }
  void add(const Kernel& r) { kernels.push_back(r); }
  void add(const Copy& r) { copies.push_back(r); }
  void add(const Memset& r) { memsets.push_back(r); }
  void add(const Launch& r) { launches.push_back({r, uses.size() - r.uses}); }
  void add(const Api& r) { apis.push_back(r); }
  void add(const Sync& r) { syncs.push_back(r); }
  void add(const EventRecord& r) { event_records.push_back(r); }
  void add(const Range& r) { ranges.push_back(r); }
  void add(const FrameworkOp& r) { ops.push_back({r, uses.size() - r.uses}); }
  void add(const External& r) { externals.push_back(r); }
  void add(const Overhead& r) { overheads.push_back(r); }
  void add(const Loss& r) { losses.push_back(r); }
  void add(const Communicator& r) { communicators.push_back(r); }
  void add(const Collective& r) { collectives.push_back(r); }
};

}  // namespace tidepool::raw
