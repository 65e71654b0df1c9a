// Where a buffer goes. One .cpp in policies/pool/ per pool.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "traces/trace.hpp"

namespace tidepool {

/// Memory as the device's own allocator hands it out, in whole segments.
class Device {
 public:
  virtual ~Device() = default;
  /// A segment of `size` bytes; nothing when the capacity does not allow it.
  virtual std::optional<Bytes> reserve(Bytes size) = 0;
  /// Takes a segment, or a part of one that was mapped page by page, back.
  virtual void release(Bytes address, Bytes size) = 0;

  /// A range of addresses without memory behind it, for a segment that grows page by page. Costs nothing, never
  /// refused.
  virtual Bytes reserve_addresses(Bytes size) = 0;
  /// Takes such a range back; nothing is mapped in it.
  virtual void release_addresses(Bytes address, Bytes size) = 0;
  /// Puts memory behind [address, address + size), which lies in such a range and has none; false when the capacity
  /// does not allow it.
  virtual bool map(Bytes address, Bytes size) = 0;
};

/// Asks for a place.
struct Request {
  Bytes size = {};         ///< as the program asked; the pool rounds
  StreamId stream = {};    ///< the stream that will use it first
  VersionId version = {};  ///< what will live there
};

/// A place: [offset, offset + size), size as rounded by the pool. offset is kNoAddress in a pool without addresses.
struct Block {
  Bytes offset = {};
  Bytes size = {};
  bool operator==(const Block&) const = default;
};

/// Something that a pool counts besides bytes, under its JSON key.
struct Count {
  std::string_view name;
  std::int64_t value = 0;
};

class Pool {
 public:
  virtual ~Pool() = default;

  /// A run begins: everything is free. `capacity` bounds the sum of reserved segments, or the addresses of a pool that
  /// owns the whole device ([0, capacity)). `device` outlives the pool.
  virtual void start(const Trace& trace, Bytes capacity, Device& device) = 0;

  /// A free place for the request, or nothing: then the policies are asked to make room.
  virtual std::optional<Block> place(const Request& request) = 0;

  /// Takes back a block that place() returned.
  virtual void release(const Block& block) = 0;

  /// Largest request that place() would satisfy now without help, for messages. May be approximate from above.
  virtual Bytes largest_hole() const = 0;

  /// What a report should say about this run besides its bytes.
  virtual std::vector<Count> counts() const { return {}; }
};

}  // namespace tidepool
