// Pool: decides where a buffer goes. One .cpp in policies/pool/ per pool.
#pragma once

#include <optional>
#include <span>
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
  /// Takes a segment back.
  virtual void release(Bytes address, Bytes size) = 0;

  /// A range of addresses without memory behind it, for a segment that grows page by page. Costs nothing, never
  /// refused.
  virtual Bytes reserve_addresses(Bytes size) = 0;
  /// Takes such a range back; nothing is mapped in it.
  virtual void release_addresses(Bytes address, Bytes size) = 0;
  /// Puts memory behind [address, address + size), which lies in such a range and has none, in pages of `page` bytes;
  /// false when the capacity does not allow it.
  virtual bool map(Bytes address, Bytes size, Bytes page) = 0;
  /// Takes the memory behind [address, address + size) back, page by page.
  virtual void unmap(Bytes address, Bytes size, Bytes page) = 0;

  /// Lets the addresses [address, address + size), which lie in a range without memory behind them, show the memory
  /// that is mapped at [memory, memory + size): a block there is that memory. All are multiples of 2 MiB. Costs a
  /// mapping for every 2 MiB.
  virtual void show(Bytes /*address*/, Bytes /*size*/, Bytes /*memory*/) {}
  /// They show nothing any more.
  virtual void hide(Bytes /*address*/, Bytes /*size*/) {}
};

/// Asks for a place.
struct Request {
  Bytes size = {};         ///< as the program asked; the pool rounds
  StreamId stream = {};    ///< the stream that will use it first
  VersionId version = {};  ///< what will live there
  OpId before = {};        ///< the op that the program runs next; none: after the last, or no ops are run
  /// When it asks. No host runs ahead of its device here; real ones do, and find less of what streams do done.
  Nanos now = {};
};

/// A stream that has used a block and is not the block's own, and when all that it has been given so far will be done.
struct StreamUse {
  StreamId stream = {};
  Nanos done = {};
};

/// How the program gives a block up.
struct Departure {
  StreamId stream = {};             ///< the block's own stream
  OpId before = {};                 ///< as in Request
  Nanos done = {};                  ///< when all that the block's own stream has been given so far will be done
  std::span<const StreamUse> uses;  ///< by other streams, in the order of their ids; each once
};

/// A place: [offset, offset + size), size as rounded by the pool. offset is kNoAddress in a pool without addresses.
struct Block {
  Bytes offset = {};
  Bytes size = {};
  std::uint32_t tag = 0;  ///< what finds it in the pool again, if the pool likes; not part of what it is
  bool operator==(const Block& other) const { return offset == other.offset && size == other.size; }
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
  /// owns the whole device ([0, capacity)). `trace` and `device` outlive the pool.
  virtual void start(const Trace& trace, Bytes capacity, Device& device) = 0;

  /// A free place for the request, or nothing: then the policies are asked to make room.
  virtual std::optional<Block> place(const Request& request) = 0;

  /// Takes back a block that place() returned; nobody uses it any more.
  virtual void release(const Block& block) = 0;

  /// Takes back a block that streams may still be using, by what they have been given already. Whoever gets it next
  /// waits for them in any case; a pool that does as its product does overrides this and holds the block back.
  virtual void give_back(const Block& block, const Departure&) { release(block); }

  /// The program's host waits until the device is done with everything, just before op `before`.
  virtual void synchronized(OpId /*before*/, Nanos /*now*/) {}

  /// Largest request that place() would satisfy now without help, for messages. May be approximate from above.
  virtual Bytes largest_hole() const = 0;

  /// What a report should say about this run besides its bytes.
  virtual std::vector<Count> counts() const { return {}; }
};

}  // namespace tidepool
