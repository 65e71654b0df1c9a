// Pool: chooses the address of each buffer. One .cpp in policies/pool/ per pool.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "traces/trace.hpp"

namespace tidepool {

/// The device's own allocator, which gives out memory in whole segments.
class Device {
 public:
  virtual ~Device() = default;
  /// Reserves a segment of `size` bytes. @return its address; nothing if the capacity does not allow it
  virtual std::optional<Bytes> reserve(Bytes size) = 0;
  /// Gives a segment back to the device.
  virtual void release(Bytes address, Bytes size) = 0;

  /// A range of addresses without memory, for a segment that grows page by page. Costs nothing and is never
  /// refused.
  virtual Bytes reserve_addresses(Bytes size) = 0;
  /// Gives such a range back; nothing may be mapped in it.
  virtual void release_addresses(Bytes address, Bytes size) = 0;
  /// Maps memory to [address, address + size), an unmapped part of such a range, in pages of `page` bytes; false if
  /// the capacity does not allow it.
  virtual bool map(Bytes address, Bytes size, Bytes page) = 0;
  /// Unmaps [address, address + size), page by page, and gives its memory back.
  virtual void unmap(Bytes address, Bytes size, Bytes page) = 0;

  /// Maps the memory of [memory, memory + size) a second time, to [address, address + size), an unmapped part of a
  /// range: a block there uses that memory. All numbers are multiples of 2 MiB. Costs one mapping for every
  /// 2 MiB.
  virtual void show(Bytes /*address*/, Bytes /*size*/, Bytes /*memory*/) {}
  /// Undoes the second mapping.
  virtual void hide(Bytes /*address*/, Bytes /*size*/) {}
};

/// A request for a place.
struct Request {
  Bytes size = {};         ///< bytes that the program asks for; the pool rounds them
  StreamId stream = {};    ///< the stream that will use it first
  VersionId version = {};  ///< the version that will live there
  OpId before = {};        ///< the op that the program runs next; none: after the last op, or if no ops are run
  /// Time of the request. The simulated host never runs ahead of its device. A real host does, so fewer ops have ended
  /// at its requests.
  Nanos now = {};
};

/// The use of a block by a stream that is not its own.
struct StreamUse {
  StreamId stream = {};
  Nanos done = {};  ///< end of all work that this stream has been given so far
};

/// The state of a block's streams when the program frees the block.
struct Departure {
  StreamId stream = {};             ///< the block's own stream
  OpId before = {};                 ///< as in Request
  Nanos done = {};                  ///< end of all work that the block's own stream has been given so far
  std::span<const StreamUse> uses;  ///< by other streams, sorted by id, each stream once
};

/// A place: [offset, offset + size), size as rounded by the pool. offset is kNoAddress in a pool without addresses.
struct Block {
  Bytes offset = {};
  Bytes size = {};
  std::uint32_t tag = 0;  ///< for the pool's own use, to find the block again; ignored by ==
  bool operator==(const Block& other) const { return offset == other.offset && size == other.size; }
};

/// A further statistic of a pool, with its JSON key.
struct Count {
  std::string_view name;
  std::int64_t value = 0;
};

class Pool {
 public:
  virtual ~Pool() = default;

  /// A run begins: everything is free. `capacity` bounds the sum of reserved segments, or the addresses of a pool that
  /// owns the whole device ([0, capacity)). `trace` and `device` outlive the pool.
  virtual void start(const Trace& trace, Bytes capacity, Device& device) = 0;

  /// A free place for the request. Nothing if there is none; then the driver asks the policies to evict.
  virtual std::optional<Block> place(const Request& request) = 0;

  /// Takes back a block that place() returned; nobody uses it any more.
  virtual void release(const Block& block) = 0;

  /// Takes back a block that streams may still be using in work given to them earlier. The block's next user waits for
  /// them in any case. A pool overrides this if the allocator that it models holds such blocks back until the streams
  /// are done.
  virtual void give_back(const Block& block, const Departure&) { release(block); }

  /// The program's host waits until the device is done with everything, just before op `before`.
  virtual void synchronized(OpId /*before*/, Nanos /*now*/) {}

  /// Largest request that place() would satisfy now without eviction, for messages. May be an overestimate.
  virtual Bytes largest_hole() const = 0;

  /// Further statistics of this run, for reports.
  virtual std::vector<Count> counts() const { return {}; }
};

}  // namespace tidepool
