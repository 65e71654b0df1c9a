// Map from the address of a block to the allocator's record of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "traces/base/quantity.hpp"

namespace tidepool {

/// A hash table from addresses (at least 0) to node numbers, with open addressing and linear probing. It is at most
/// half full. A removal moves entries to close the hole, so the table is rebuilt only when it grows.
class AddressMap {
 public:
  static constexpr std::uint32_t kNone = UINT32_MAX;

  AddressMap() : slots_(kLeast) {}

  void insert(Bytes address, std::uint32_t node) {
    if (2 * (count_ + 1) > slots_.size()) grow();
    ++count_;
    put({address.count(), node});
  }

  /// The node at `address`, or kNone.
  std::uint32_t find(Bytes address) const {
    for (std::size_t slot = home(address.count());; slot = (slot + 1) & (slots_.size() - 1)) {
      if (slots_[slot].address == address.count()) return slots_[slot].node;
      if (slots_[slot].address == kEmpty) return kNone;
    }
  }

  /// Removes and returns the node at `address`, or kNone if there is none.
  std::uint32_t take(Bytes address) {
    const std::size_t mask = slots_.size() - 1;
    std::size_t hole = home(address.count());
    while (slots_[hole].address != address.count()) {
      if (slots_[hole].address == kEmpty) return kNone;
      hole = (hole + 1) & mask;
    }
    const std::uint32_t node = slots_[hole].node;
    --count_;
    for (std::size_t slot = (hole + 1) & mask; slots_[slot].address != kEmpty; slot = (slot + 1) & mask) {
      const std::size_t wanted = home(slots_[slot].address);
      if (((slot - wanted) & mask) < ((slot - hole) & mask)) continue;  // its probe does not pass the hole
      slots_[hole] = slots_[slot];
      hole = slot;
    }
    slots_[hole] = {};
    return node;
  }

  std::size_t count() const { return count_; }

 private:
  static constexpr std::int64_t kEmpty = -1;
  static constexpr std::size_t kLeast = 256;
  struct Slot {
    std::int64_t address = kEmpty;
    std::uint32_t node = kNone;
  };

  std::size_t home(std::int64_t address) const {
    // Fibonacci hashing: the upper half of the product depends on every bit of the address.
    const std::uint64_t product = static_cast<std::uint64_t>(address) * 0x9E3779B97F4A7C15u;
    return static_cast<std::size_t>(product >> 32) & (slots_.size() - 1);
  }

  void put(Slot entry) {
    std::size_t slot = home(entry.address);
    while (slots_[slot].address != kEmpty) slot = (slot + 1) & (slots_.size() - 1);
    slots_[slot] = entry;
  }

  void grow() {
    std::vector<Slot> old(slots_.size() * 2);
    old.swap(slots_);
    for (const Slot& slot : old)
      if (slot.address != kEmpty) put(slot);
  }

  std::vector<Slot> slots_;
  std::size_t count_ = 0;
};

}  // namespace tidepool
